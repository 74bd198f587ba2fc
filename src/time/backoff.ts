/** How long to wait after a failure: pure policy, numbers in and out. */

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** From 0 to below 1, for full jitter: the wait is this share of what it would be. Default: no jitter. */
  readonly random?: number
}

/** Doubles with each failure, from `firstMs` up to `maxMs`. `failures` counts from 1. Returns milliseconds. */
export function backoff(failures: number, { firstMs, maxMs, random = 1 }: BackoffOptions): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * random)
}

/** How long to wait after a failure: pure policy, numbers in and out. */

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** The fraction of the wait to use, from 0 to 1: with random fractions, callers do not all retry at the same time. Default: 1. */
  readonly random?: number
}

/**
 * Returns how long to wait after this many failures in a row, in milliseconds: `firstMs` at first, then twice as long each time, up to
 * `maxMs`.
 */
export function backoff(failures: number, { firstMs, maxMs, random = 1 }: BackoffOptions): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * random)
}

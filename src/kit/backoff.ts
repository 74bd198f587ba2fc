/** Computes how long to wait after a failure. */

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** The fraction of the wait to use, from 0 to 1. With random fractions, callers do not all retry at the same time. Default 1. */
  readonly random?: number
}

/**
 * Returns how long to wait after this many failures in a row, in milliseconds. The wait is `firstMs` at first, and doubles with each
 * further failure, up to `maxMs`. The result is the fraction `random` of this wait.
 */
export function backoff(failures: number, { firstMs, maxMs, random = 1 }: BackoffOptions): number {
  return Math.round(Math.min(maxMs, firstMs * 2 ** (failures - 1)) * random)
}

/** Limits a rate with a token bucket. */

/** Limits the rate of events: each event removes a token. Times are in milliseconds, on the monotonic clock. */
export interface TokenBucket {
  /** Returns the number of whole tokens in the bucket. */
  count(now: number): number
  /** Returns the time at which the next token is available. */
  nextAt(now: number): number
  take(now: number): void
}

export const UNLIMITED: TokenBucket = { count: () => Number.POSITIVE_INFINITY, nextAt: (now) => now, take() {} }

/**
 * Creates a full bucket.
 *
 * @param forMs The bucket holds as many tokens as are added in this many milliseconds, but at least one.
 */
export function createTokenBucket(perSecond: number, forMs = 100): TokenBucket {
  const capacity = Math.max(1, (perSecond * forMs) / 1_000)
  let tokens = capacity
  let filledAt = Number.NEGATIVE_INFINITY

  function refill(now: number): number {
    tokens = Math.min(capacity, tokens + ((now - filledAt) * perSecond) / 1_000)
    filledAt = now
    return tokens + 1e-6 // Rounding may leave slightly less than a whole token.
  }

  return {
    count: (now) => Math.max(0, Math.floor(refill(now))),
    nextAt: (now) => now + Math.max(0, Math.ceil(((1 - refill(now)) * 1_000) / perSecond)),
    take(now) {
      refill(now)
      tokens -= 1
    },
  }
}

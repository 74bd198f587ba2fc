/** What every store of handled messages can be told, and what it is asked: checked once and loudly. */

import { type Clock, systemClock } from '../protocol/clock.ts'
import { requireClock, requireWhole } from '../protocol/options.ts'

/** What every store takes. */
export interface DedupeTimes {
  /** How long a message that was handled is known, in milliseconds. Default 24 hours. */
  readonly windowMs?: number
  /**
   * How long a claim holds that is neither confirmed nor released, in milliseconds. Default 60 000. Longer than your
   * slowest handler: once it is over, a copy of the message is handled beside the one that still runs.
   */
  readonly leaseMs?: number
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The names of {@link DedupeTimes}. */
export const SHARED = ['windowMs', 'leaseMs', 'clock'] as const satisfies (keyof DedupeTimes)[]

/**
 * Checks and completes what every store takes.
 *
 * @throws TypeError that names the option.
 */
export function readShared(options: DedupeTimes): Required<DedupeTimes> {
  const { windowMs = 24 * 60 * 60_000, leaseMs = 60_000, clock = systemClock } = options
  requireClock(clock)
  return {
    windowMs: requireWhole('windowMs', windowMs, 1, MOST_MS),
    leaseMs: requireWhole('leaseMs', leaseMs, 1, MOST_MS),
    clock,
  }
}

/** A hundred years: what comes of adding it to the time is still a whole number that every store can hold. */
const MOST_MS = 100 * 366 * 24 * 60 * 60_000

/**
 * Lets a key pass.
 *
 * @throws TypeError
 */
export function requireKey(key: unknown): asserts key is string {
  if (typeof key === 'string' && key !== '' && key.length <= 200) return
  throw new TypeError('claim: the key must be a string of 1 to 200 characters.')
}

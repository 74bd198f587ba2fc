/** The options that every dedupe store takes, and its keys: checked once. */

import { invalidOption, kindOf, requireClock, requireWhole } from '../options/checks.ts'
import { type Clock, systemClock } from '../time/clock.ts'

/** The times of a dedupe store. */
export interface DedupeTimes {
  /** How long a handled message is remembered, in milliseconds. Default 24 hours. */
  readonly dedupeWindowMs?: number
  /**
   * How long a claim holds that is neither confirmed nor released, in milliseconds. Default 60 000. Set it longer than your
   * slowest handler takes: once it has expired, a copy of the message is handled while the first is still running.
   */
  readonly leaseMs?: number
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The names of {@link DedupeTimes}. */
export const SHARED = ['dedupeWindowMs', 'leaseMs', 'clock'] as const satisfies (keyof DedupeTimes)[]

/** Checks and completes the shared options. @throws TypeError that names the option. */
export function readShared(options: DedupeTimes): Required<DedupeTimes> {
  const { dedupeWindowMs = 24 * 60 * 60_000, leaseMs = 60_000, clock = systemClock } = options
  requireClock(clock)
  return {
    dedupeWindowMs: requireWhole('dedupeWindowMs', dedupeWindowMs, 1, MAX_MS),
    leaseMs: requireWhole('leaseMs', leaseMs, 1, MAX_MS),
    clock,
  }
}

/** A hundred years: added to the time of day it is still a whole number that every store can hold. */
const MAX_MS = 100 * 366 * 24 * 60 * 60_000

/** @throws TypeError for anything but text of 1 to 200 characters. */
export function requireKey(key: unknown): asserts key is string {
  if (typeof key === 'string' && key !== '' && key.length <= 200) return
  const found = typeof key === 'string' ? `${key.length} characters` : kindOf(key)
  throw invalidOption('key', 'must be a string of 1 to 200 characters', found, 'Pass a hash of a longer key.')
}

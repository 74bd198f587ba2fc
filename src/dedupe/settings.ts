/** The options that every dedupe store takes, and its keys: checked once. */

import { HooklineError } from '../message/error.ts'
import { aClock, invalidOption, kindOf, type OptionChecks, whole } from '../options/checks.ts'
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

/** A hundred years: added to the time of day it is still a whole number that every store can hold. */
const MAX_MS = 100 * 366 * 24 * 60 * 60_000

export const TIMES_CHECKS: OptionChecks<DedupeTimes> = {
  dedupeWindowMs: whole(1, MAX_MS),
  leaseMs: whole(1, MAX_MS),
  clock: aClock,
}

/** The error of a call after close(). */
export function closed(code: 'shutting_down' | 'dedupe_unavailable' = 'shutting_down'): HooklineError {
  return new HooklineError(code, 'The dedupe store is closed. Got a call after close(). Create a new store.')
}

export function readTimes({ dedupeWindowMs = 24 * 60 * 60_000, leaseMs = 60_000, clock = systemClock }: DedupeTimes) {
  return { dedupeWindowMs, leaseMs, clock }
}

export function requireKey(key: unknown): asserts key is string {
  if (typeof key === 'string' && key !== '' && key.length <= 200) return
  const found = typeof key === 'string' ? `${key.length} characters` : kindOf(key)
  throw invalidOption('key', 'must be a string of 1 to 200 characters', found, 'Pass a hash of a longer key.')
}

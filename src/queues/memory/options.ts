/** The options of a queue in memory. */

import { requireClock, requireOptions, requireText, requireWhole } from '../../options/checks.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { readRetention } from '../arguments.ts'

/** What `memoryQueue` takes. */
export interface MemoryQueueOptions {
  /** Names the queue in its errors. Default `memory`. */
  readonly name?: string
  /** The most jobs that wait or are claimed. Default 100 000. */
  readonly maxJobs?: number
  /** The most bytes of bodies and retry states. Default 256 MiB. Dead letters count too, but make way for new jobs. */
  readonly maxBytes?: number
  /** The most dead letters; past that the oldest is forgotten. Default 10 000. */
  readonly maxDeadLetters?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds, from its completion. Default 24 hours. At most
   * `maxJobs` ids are remembered, the latest.
   */
  readonly dedupeWindowMs?: number
  /**
   * How long dead letters are kept, in milliseconds. A queue with a handler drops older ones once an hour, or once in this time
   * when that is shorter. Default: for ever.
   */
  readonly deadLetterRetentionMs?: number
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The options, checked and complete. */
export interface Settings extends Required<Omit<MemoryQueueOptions, 'deadLetterRetentionMs'>> {
  readonly deadLetterRetentionMs: number | undefined
}

const OPTIONS = [
  'name',
  'maxJobs',
  'maxBytes',
  'maxDeadLetters',
  'dedupeWindowMs',
  'deadLetterRetentionMs',
  'clock',
] as const satisfies (keyof MemoryQueueOptions)[]

/** Checks and completes the options. @throws TypeError that names the option. */
export function readOptions(options: MemoryQueueOptions): Settings {
  requireOptions('memoryQueue', options, OPTIONS)
  const { name = 'memory', maxJobs = 100_000, maxBytes = 256 * 1024 * 1024, maxDeadLetters = 10_000 } = options
  const { dedupeWindowMs = 24 * 60 * 60_000, clock = systemClock } = options
  requireText('name', name)
  requireClock(clock)
  return {
    name,
    maxJobs: requireWhole('maxJobs', maxJobs, 1, MOST),
    maxBytes: requireWhole('maxBytes', maxBytes, 1, MOST),
    maxDeadLetters: requireWhole('maxDeadLetters', maxDeadLetters, 1, MOST),
    deadLetterRetentionMs: readRetention(options.deadLetterRetentionMs),
    dedupeWindowMs: requireWhole('dedupeWindowMs', dedupeWindowMs, 1, MOST),
    clock,
  }
}

const MOST = Number.MAX_SAFE_INTEGER

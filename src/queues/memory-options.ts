/** What a queue in memory can be told, checked once and loudly. */

import { type Clock, systemClock } from '../protocol/clock.ts'
import { refuseUnknown, requireClock, requireText, requireWhole } from '../protocol/options.ts'

/** What `memoryQueue` takes. */
export interface MemoryQueueOptions {
  /** Names the queue in its errors. Default `memory`. */
  readonly name?: string
  /** Most jobs that wait or are handed out. Default 100 000. */
  readonly maxJobs?: number
  /** Most bytes of bodies and states. Default 256 MiB. Of dead jobs too, but those make way for new ones. */
  readonly maxBytes?: number
  /** Most dead jobs; past that the longest dead is forgotten. Default 10 000. */
  readonly maxDead?: number
  /**
   * How long the id of a job that is done stays known, in milliseconds. Default 24 hours. At most `maxJobs` of them
   * are known, the latest.
   */
  readonly knownForMs?: number
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

const KNOWN = [
  'name',
  'maxJobs',
  'maxBytes',
  'maxDead',
  'knownForMs',
  'clock',
] as const satisfies (keyof MemoryQueueOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: MemoryQueueOptions): Required<MemoryQueueOptions> {
  if (typeof options !== 'object' || options === null) throw new TypeError('memoryQueue: its options are an object.')
  refuseUnknown(options, KNOWN)
  const { name = 'memory', maxJobs = 100_000, maxBytes = 256 * 1024 * 1024, maxDead = 10_000 } = options
  const { knownForMs = 24 * 60 * 60_000, clock = systemClock } = options
  requireText('name', name)
  requireClock(clock)
  return {
    name,
    maxJobs: requireWhole('maxJobs', maxJobs, 1, MOST),
    maxBytes: requireWhole('maxBytes', maxBytes, 1, MOST),
    maxDead: requireWhole('maxDead', maxDead, 1, MOST),
    knownForMs: requireWhole('knownForMs', knownForMs, 1, MOST),
    clock,
  }
}

const MOST = Number.MAX_SAFE_INTEGER

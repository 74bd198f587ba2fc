/** What a queue in memory can be told, checked once and loudly. */

import { type Clock, systemClock } from '../protocol/clock.ts'

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

const KNOWN: ReadonlySet<string> = new Set([
  'name',
  'maxJobs',
  'maxBytes',
  'maxDead',
  'knownForMs',
  'clock',
] satisfies (keyof MemoryQueueOptions)[])

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: MemoryQueueOptions): Required<MemoryQueueOptions> {
  if (typeof options !== 'object' || options === null) throw new TypeError('memoryQueue: its options are an object.')
  for (const name of Object.keys(options)) {
    if (!KNOWN.has(name)) throw new TypeError(`${name}: no such option. There are ${[...KNOWN].join(', ')}.`)
  }
  const { name = 'memory', maxJobs = 100_000, maxBytes = 256 * 1024 * 1024, maxDead = 10_000 } = options
  const { knownForMs = 24 * 60 * 60_000, clock = systemClock } = options
  if (typeof name !== 'string' || name === '') throw new TypeError('name: must be a string that is not empty.')
  for (const method of ['now', 'monotonic', 'setTimeout', 'clearTimeout'] as const) {
    if (typeof clock?.[method] !== 'function') throw new TypeError(`clock.${method}: must be a function.`)
  }
  return {
    name,
    maxJobs: readWhole('maxJobs', maxJobs),
    maxBytes: readWhole('maxBytes', maxBytes),
    maxDead: readWhole('maxDead', maxDead),
    knownForMs: readWhole('knownForMs', knownForMs),
    clock,
  }
}

function readWhole(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new TypeError(`${name}: must be a whole number above 0.`)
}

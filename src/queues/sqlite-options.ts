/** What a queue in SQLite can be told, checked once and loudly. */

import { type Clock, systemClock } from '../protocol/clock.ts'
import { refuseUnknown, requireClock, requireFunction, requireText, requireWhole } from '../protocol/options.ts'

/** What `sqliteQueue` takes. */
export interface SqliteQueueOptions {
  /** The file; it is made when there is none, and SQLite puts two more beside it. On a disk of this machine. */
  readonly path: string
  /** Keeps queues apart that share the file. Default `default`. */
  readonly name?: string
  /** Most jobs that wait or are handed out. Default 10 million. */
  readonly maxJobs?: number
  /**
   * How long a job stays with a process that has died, in milliseconds, before it is handed out again. Default 60 000. While a
   * handler runs, its lease is renewed.
   */
  readonly leaseMs?: number
  /** How often to look for jobs that other processes put in, in milliseconds. Default 200. */
  readonly pollMs?: number
  /** How long the id of a job that is done stays known, in milliseconds. Default 24 hours. */
  readonly knownForMs?: number
  /** How long a call waits while another process writes to the file, in milliseconds. Default 3000. */
  readonly busyTimeoutMs?: number
  /** Sees what fails while nobody waits for it: a claim on a full disk, a thread that died. Default: `console.error`. */
  readonly onError?: (error: unknown) => unknown
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The options, complete. */
export type SqliteSettings = Required<SqliteQueueOptions>

const KNOWN = [
  'path',
  'name',
  'maxJobs',
  'leaseMs',
  'pollMs',
  'knownForMs',
  'busyTimeoutMs',
  'onError',
  'clock',
] as const satisfies (keyof SqliteQueueOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: SqliteQueueOptions): SqliteSettings {
  if (typeof options !== 'object' || options === null) throw new TypeError('sqliteQueue: give it options, { path }.')
  refuseUnknown(options, KNOWN)
  const { path, name = 'default', maxJobs = 10_000_000, leaseMs = 60_000, pollMs = 200 } = options
  const { knownForMs = 24 * 60 * 60_000, busyTimeoutMs = 3_000, onError = print, clock = systemClock } = options
  requireText('path', path)
  if (path.startsWith(':memory:')) throw new TypeError('path: must be a file. In memory, use a memoryQueue.')
  requireText('name', name)
  requireFunction('onError', onError)
  requireClock(clock)
  return {
    path,
    name,
    maxJobs: requireWhole('maxJobs', maxJobs, 1, MOST),
    leaseMs: requireWhole('leaseMs', leaseMs, 100, MOST),
    pollMs: requireWhole('pollMs', pollMs, 1),
    knownForMs: requireWhole('knownForMs', knownForMs, 1, MOST),
    busyTimeoutMs: requireWhole('busyTimeoutMs', busyTimeoutMs, 0, 60_000),
    onError,
    clock,
  }
}

const MOST = Number.MAX_SAFE_INTEGER

function print(error: unknown): void {
  console.error(error)
}

/** What a queue in a SQLite file can be told, checked once and loudly. */

import { resolve } from 'node:path'
import { type Clock, systemClock } from '../protocol/clock.ts'
import type { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireClock, requireFunction, requireText, requireWhole } from '../protocol/options.ts'
import { printOurFaults } from '../protocol/report.ts'

/** What `sqliteQueue` takes. */
export interface SqliteQueueOptions {
  /** The file; it is made when there is none, and two more beside it. On a disk of this machine, not of a network. */
  readonly path: string
  /** Names the queue: several may be in one file, and processes that share a file and a name share the jobs. Default `default`. */
  readonly name?: string
  /** How long a process that died keeps its jobs, in milliseconds. Default 60 000. */
  readonly leaseMs?: number
  /** How often to look for jobs that other processes put in, in milliseconds. Default 200. */
  readonly pollMs?: number
  /** How long the id of a job that is done stays known, in milliseconds: some 80 bytes of the file each. Default 24 hours. */
  readonly knownForMs?: number
  /** Most jobs that wait or are handed out. Default: as many as the disk holds. */
  readonly maxJobs?: number
  /** How long a call waits while others write to the file, in milliseconds, before it is `queue_unavailable`. Default 2000. */
  readonly busyTimeoutMs?: number
  /**
   * Sees why no job could be handed out or settled, and why the thread that has the file died. The queue tries again by
   * itself. Default: prints them.
   */
  readonly onError?: (error: HooklineError) => unknown
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The same, checked and complete. */
export type Settings = Required<SqliteQueueOptions>

const KNOWN = [
  'path',
  'name',
  'leaseMs',
  'pollMs',
  'knownForMs',
  'maxJobs',
  'busyTimeoutMs',
  'onError',
  'clock',
] as const satisfies (keyof SqliteQueueOptions)[]

/**
 * Checks and completes the options.
 *
 * @throws TypeError that names the option.
 */
export function readOptions(options: SqliteQueueOptions): Settings {
  if (typeof options !== 'object' || options === null) throw new TypeError('sqliteQueue: give it options, { path }.')
  refuseUnknown(options, KNOWN)
  const { path, name = 'default', leaseMs = 60_000, pollMs = 200, knownForMs = 24 * 60 * 60_000 } = options
  const { maxJobs = MOST, busyTimeoutMs = 2_000, onError = printOurFaults, clock = systemClock } = options
  requireText('path', path)
  if (path === ':memory:' || path.startsWith('file:'))
    throw new TypeError(
      'path: must be the path of a file. For a queue in memory use memoryQueue, of hookline/queues/memory.',
    )
  requireText('name', name)
  requireFunction('onError', onError)
  requireClock(clock)
  return {
    path: resolve(path),
    name,
    leaseMs: requireWhole('leaseMs', leaseMs, 3),
    pollMs: requireWhole('pollMs', pollMs, 1),
    knownForMs: requireWhole('knownForMs', knownForMs, 1, MOST),
    maxJobs: requireWhole('maxJobs', maxJobs, 1, MOST),
    busyTimeoutMs: requireWhole('busyTimeoutMs', busyTimeoutMs, 0, 60_000),
    onError,
    clock,
  }
}

const MOST = Number.MAX_SAFE_INTEGER

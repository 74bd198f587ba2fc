/** The options of a queue in a SQLite file. */

import { resolve } from 'node:path'
import {
  checkOptions,
  invalidOption,
  type OptionChecks,
  requireBoolean,
  requireText,
  show,
  whole,
} from '../../kit/checks.ts'
import { systemClock } from '../../kit/clock.ts'
import { readOnError } from '../../kit/report.ts'
import type { HooklineError } from '../../protocol/error.ts'
import { type CreateQueueOptions, QUEUE_CHECKS, withDefaults } from '../arguments.ts'

/** Options of `sqliteQueue`. */
export interface SqliteQueueOptions extends Pick<CreateQueueOptions, 'deadLetterRetentionMs' | 'logger' | 'clock'> {
  /**
   * The file, created if it does not exist. SQLite keeps two more beside it, and each process that uses it one. It must be
   * on a disk of this machine, not of a network.
   */
  readonly path: string
  /**
   * Names the queue. One file holds many queues; processes that use the same file and name share the jobs. Default
   * `default`.
   */
  readonly name?: string
  /**
   * How often to look for jobs that other processes pushed, in milliseconds, and for processes that died. The system tells of pushes at once,
   * where it can. Default 500.
   */
  readonly pollMs?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds, from its completion. Each takes some 80 bytes of the
   * file. Of processes that share the queue, the shortest counts. Default 24 hours.
   */
  readonly dedupeWindowMs?: number
  /** The most jobs that wait or are claimed. Default: as many as fit on the disk. */
  readonly maxJobs?: number
  /**
   * Opens the queue as an observer: to count its jobs, to list, redrive and drop its dead letters, and to replay, beside running workers. It
   * claims and creates nothing, and `work` throws a TypeError. Until file and queue exist, each call rejects with
   * `queue_unavailable`. Default false.
   */
  readonly observe?: boolean
  /**
   * How long a call waits while another process writes to the file, in milliseconds, before it rejects with
   * `queue_unavailable`. Calls of several queues of a file that are made together wait as long as the longest. Default 2000.
   */
  readonly timeoutMs?: number
  /**
   * Receives the errors of work in the background: a claim or an outcome that the file could not take. The queue retries
   * automatically. Default: prints a line for each, see `logger`.
   */
  readonly onError?: (error: HooklineError) => unknown
}

export type Settings = ReturnType<typeof readOptions>

const count = whole(1, Number.MAX_SAFE_INTEGER)
const CHECKS: OptionChecks<SqliteQueueOptions> = {
  ...QUEUE_CHECKS,
  path: requirePath,
  dedupeWindowMs: count,
  maxJobs: count,
  observe: requireBoolean,
  timeoutMs: whole(0, 60_000),
}
const DEFAULTS = {
  name: 'default',
  pollMs: 500,
  dedupeWindowMs: 24 * 60 * 60_000,
  maxJobs: Number.MAX_SAFE_INTEGER,
  observe: false,
  timeoutMs: 2_000,
  clock: systemClock,
}

export function readOptions(options: SqliteQueueOptions) {
  checkOptions('sqliteQueue', options, CHECKS)
  requirePath('path', options.path)
  const settings = withDefaults<SqliteQueueOptions, typeof DEFAULTS>(options, DEFAULTS)
  return { ...settings, path: resolve(options.path), onError: readOnError(options, settings.clock) }
}

function requirePath(name: string, path: unknown): void {
  requireText(name, path, 'jobs.sqlite')
  if (path !== ':memory:' && !path.startsWith('file:')) return
  const advice =
    "Pass a path, for example 'jobs.sqlite'; for a queue in memory, use memoryQueue of hookline/queues/memory."
  throw invalidOption(name, 'must be the path of a file', show(path), advice)
}

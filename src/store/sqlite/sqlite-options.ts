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

/** The options of `sqliteQueue`. */
export interface SqliteQueueOptions extends Pick<CreateQueueOptions, 'deadLetterRetentionMs' | 'logger' | 'clock'> {
  /**
   * The path of the file, which is created if it does not exist. SQLite keeps two more files next to it, and each process that uses the
   * file keeps one more. The file must be on a local disk, not on a network drive.
   */
  readonly path: string
  /**
   * The name of the queue. One file can hold many queues. Processes that use the same file and the same name share the jobs. Default
   * `default`.
   */
  readonly name?: string
  /**
   * How often the queue looks for jobs that other processes pushed, and for processes that died, in milliseconds. If the operating system
   * can report writes to the file, pushes are found at once. Default 500.
   */
  readonly pollMs?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds from its completion. Each id takes about 80 bytes in the file. If
   * processes that share the queue set different times, the shortest one applies. Default 24 hours.
   */
  readonly dedupeWindowMs?: number
  /** The maximum number of jobs that wait or are claimed. Default: no maximum. */
  readonly maxJobs?: number
  /**
   * Whether to open the queue as an observer. While workers run, an observer can count the jobs of the queue; list, redrive and drop its
   * dead letters; and replay messages. It does not claim or create anything, and its `work` throws a TypeError. Until the file and the
   * queue exist, each call rejects with `queue_unavailable`. Default false.
   */
  readonly observe?: boolean
  /**
   * How long a call waits while another process writes to the file, in milliseconds, before it rejects with `queue_unavailable`. If several
   * queues of a file are called together, all of these calls wait for up to the longest `timeoutMs` among them. Default 2000.
   */
  readonly timeoutMs?: number
  /**
   * Receives the errors of background work, for example when a claim or an outcome cannot be written to the file. The queue retries
   * automatically. Default: `logger` receives a line for each error.
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
    "Pass a path, for example 'jobs.sqlite'. For a queue in memory, use memoryQueue of hookline/queues/memory."
  throw invalidOption(name, 'must be the path of a file', show(path), advice)
}

/** The options of a queue in a SQLite file. */

import { resolve } from 'node:path'
import type { HooklineError } from '../../message/error.ts'
import {
  invalidOption,
  requireBoolean,
  requireClock,
  requireOptions,
  requireText,
  requireWhole,
  show,
} from '../../options/checks.ts'
import type { Logger } from '../../options/log.ts'
import { readOnError } from '../../options/report.ts'
import { type Clock, systemClock } from '../../time/clock.ts'
import { readRetention } from '../arguments.ts'

/** What `sqliteQueue` takes. */
export interface SqliteQueueOptions {
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
  /** How often to look for jobs that other processes pushed, in milliseconds. Default 200. */
  readonly pollMs?: number
  /**
   * How long the id of a completed job is remembered, in milliseconds, from its completion. Each takes some 80 bytes of the
   * file. Of processes that share the queue, the shortest counts. Default 24 hours.
   */
  readonly dedupeWindowMs?: number
  /**
   * How long dead letters are kept, in milliseconds. A queue with a handler drops older ones once an hour, or once in this time
   * when that is shorter. Default: for ever.
   */
  readonly deadLetterRetentionMs?: number
  /** The most jobs that wait or are claimed. Default: as many as fit on the disk. */
  readonly maxJobs?: number
  /**
   * Opens the queue as an observer: to count its jobs, and to list, redrive and drop its dead letters beside running workers. It
   * claims and creates nothing, and `push` and `work` throw a TypeError. Until file and queue exist, each call rejects with
   * `queue_unavailable`. Default false.
   */
  readonly observe?: boolean
  /**
   * How long a call waits while another process writes to the file, in milliseconds, before it rejects with
   * `queue_unavailable`. Calls of several queues of a file that are made together wait as long as the longest. Default 2000.
   */
  readonly timeoutMs?: number
  /**
   * Receives the errors of work in the background: a claim or an outcome that the file could not take. The queue tries
   * again by itself. Default: prints a line for each, see `logger`.
   */
  readonly onError?: (error: HooklineError) => unknown
  /**
   * Receives the lines about errors: pino, or any object of its shape. Default: the console, at most a few lines of each code a
   * minute; with `onError` nothing, unless `console` is passed here.
   */
  readonly logger?: Logger
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock
}

/** The options, checked and complete. `onError` writes the log too. */
export interface Settings extends Required<Omit<SqliteQueueOptions, 'deadLetterRetentionMs' | 'logger'>> {
  readonly deadLetterRetentionMs: number | undefined
}

const OPTIONS = [
  'path',
  'name',
  'pollMs',
  'dedupeWindowMs',
  'deadLetterRetentionMs',
  'maxJobs',
  'observe',
  'timeoutMs',
  'onError',
  'logger',
  'clock',
] as const satisfies (keyof SqliteQueueOptions)[]

/** Checks and completes the options. @throws TypeError that names the option. */
export function readOptions(options: SqliteQueueOptions): Settings {
  requireOptions('sqliteQueue', options, OPTIONS)
  const { path, name = 'default', pollMs = 200, dedupeWindowMs = 24 * 60 * 60_000 } = options
  const { maxJobs = MOST, observe = false, timeoutMs = 2_000, clock = systemClock } = options
  requireText('path', path, 'jobs.sqlite')
  if (path === ':memory:' || path.startsWith('file:')) {
    const advice =
      "Pass a path, for example 'jobs.sqlite'; for a queue in memory, use memoryQueue of hookline/queues/memory."
    throw invalidOption('path', 'must be the path of a file', show(path), advice)
  }
  requireText('name', name)
  requireBoolean('observe', observe)
  requireClock(clock)
  return {
    path: resolve(path),
    name,
    pollMs: requireWhole('pollMs', pollMs, 1),
    dedupeWindowMs: requireWhole('dedupeWindowMs', dedupeWindowMs, 1, MOST),
    maxJobs: requireWhole('maxJobs', maxJobs, 1, MOST),
    observe,
    timeoutMs: requireWhole('timeoutMs', timeoutMs, 0, 60_000),
    deadLetterRetentionMs: readRetention(options.deadLetterRetentionMs),
    onError: readOnError(options, clock),
    clock,
  }
}

const MOST = Number.MAX_SAFE_INTEGER

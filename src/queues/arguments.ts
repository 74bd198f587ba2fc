/** Checks the options of a queue, its store and the arguments of its calls: the same for every engine. */

import { isUint8Array } from 'node:util/types'
import type { HooklineError } from '../message/error.ts'
import {
  invalidOption,
  kindOf,
  refuseUnknown,
  requireClock,
  requireFunction,
  requireMethods,
  requireOptions,
  requireText,
  requireWhole,
  show,
} from '../options/checks.ts'
import type { Logger } from '../options/log.ts'
import { readOnError } from '../options/report.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import type { CloseOptions, DeadLetterPage, Job, PushOptions, StoredDeadLetterFilter } from './queue.ts'
import type { QueueStore } from './store.ts'

/** What `createQueue` takes beside the store. */
export interface CreateQueueOptions {
  /** Names the queue in its errors. */
  readonly name: string
  /** How often to look for jobs that other processes pushed, in milliseconds. Default: never. */
  readonly pollMs?: number | undefined
  /**
   * How long dead letters are kept, in milliseconds. A queue with a handler drops older ones once an hour, or once in this time
   * when that is shorter. Default: for ever.
   */
  readonly deadLetterRetentionMs?: number | undefined
  /**
   * Receives the errors of work in the background: a claim, an outcome or a lease that the store could not take. The queue
   * tries again by itself. Default: prints a line for each, see `logger`.
   */
  readonly onError?: ((error: HooklineError) => unknown) | undefined
  /**
   * Receives the lines about errors: pino, or any object of its shape. Default: the console, at most a few lines of each code a
   * minute; with `onError` nothing, unless `console` is passed here.
   */
  readonly logger?: Logger | undefined
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock | undefined
}

const OPTIONS = [
  'name',
  'pollMs',
  'deadLetterRetentionMs',
  'onError',
  'logger',
  'clock',
] as const satisfies (keyof CreateQueueOptions)[]

/** The options, checked and complete. */
interface QueueSettings extends Pick<CreateQueueOptions, 'name' | 'pollMs' | 'deadLetterRetentionMs'> {
  readonly report: (error: HooklineError) => void
  readonly clock: Clock
}

/** Checks and completes the options of a queue. @throws TypeError that names the option. */
export function readOptions(options: CreateQueueOptions): QueueSettings {
  requireOptions('createQueue', options, OPTIONS)
  const { name, pollMs, deadLetterRetentionMs, clock = systemClock } = options
  requireText('name', name)
  if (pollMs !== undefined) requireWhole('pollMs', pollMs, 1)
  readRetention(deadLetterRetentionMs)
  requireClock(clock)
  return { name, pollMs, deadLetterRetentionMs, clock, report: readOnError(options, clock) }
}

/** The jobs of a push; the first of those that have the same id. @throws TypeError that names the field. */
export function readJobs(jobs: readonly Job[]): readonly Job[] {
  if (!Array.isArray(jobs)) throw invalidOption('jobs', 'must be a list', show(jobs), 'Pass [{ id, body }].')
  for (const job of jobs) requireJob(job)
  if (jobs.length < 2) return [...jobs]
  const byId = new Map<string, Job>()
  for (const job of jobs) if (!byId.has(job.id)) byId.set(job.id, job)
  return [...byId.values()]
}

function requireJob(job: Job): void {
  requireId('id', job?.id)
  if (!isUint8Array(job.body)) {
    throw invalidOption('body', 'must be a Uint8Array', kindOf(job.body), 'Pass bytes, for example Buffer.from(text).')
  }
  if (job.notBefore !== undefined && !isTime(job.notBefore)) {
    throw invalidOption('notBefore', 'must be a valid Date', show(job.notBefore), 'Pass a Date, or leave it out.')
  }
}

/** @throws TypeError that names the option, also for a `db` when the engine has no transactions. */
export function readDb(options: PushOptions | undefined, name: string, hasTransactions = false): object | undefined {
  if (options === undefined) return undefined
  requireOptions('push', options, ['db'])
  if (!('db' in options)) return undefined
  const db: unknown = options.db
  if (typeof db !== 'object' || db === null) {
    throw invalidOption('db', 'must be a transaction', kindOf(db), 'Pass one of your database, or leave it out.')
  }
  if (hasTransactions) return db
  const advice = 'Use pgBossQueue of hookline/queues/pg-boss, or leave `db` out.'
  throw invalidOption('db', 'needs an engine with transactions', `queue ${name}, whose engine has none`, advice)
}

function isTime(value: unknown): boolean {
  return value instanceof Date && !Number.isNaN(value.getTime())
}

/** @throws TypeError for anything but `all` and a list of ids. Returns each id once. */
export function readIds(ids: readonly string[] | 'all'): readonly string[] | 'all' {
  if (ids === 'all') return ids
  if (!Array.isArray(ids))
    throw invalidOption('ids', "must be a list of ids or 'all'", show(ids), "Pass [id] or 'all'.")
  for (const id of ids) requireId('ids', id)
  return [...new Set(ids)]
}

/**
 * The filter of a drop; undefined for ids and `all`.
 *
 * @throws TypeError that names the field, and for a filter that would drop everything.
 */
export function readFilter(
  which: readonly string[] | 'all' | StoredDeadLetterFilter,
): StoredDeadLetterFilter | undefined {
  if (typeof which !== 'object' || which === null || Array.isArray(which)) return undefined
  refuseUnknown(which, ['olderThan', 'reason', 'matches'])
  const { olderThan, reason, matches } = which as StoredDeadLetterFilter
  if (olderThan === undefined && reason === undefined && matches === undefined) {
    throw invalidOption(
      'drop',
      'must be given `olderThan` or `reason`',
      'neither',
      "To drop all dead letters, pass 'all'.",
    )
  }
  if (olderThan !== undefined && !isTime(olderThan)) {
    throw invalidOption('olderThan', 'must be a valid Date', show(olderThan), 'Pass a Date, or leave it out.')
  }
  if (reason !== undefined) requireText('reason', reason, 'handler_failed')
  if (matches !== undefined) requireFunction('matches', matches)
  return which as StoredDeadLetterFilter
}

/** @throws TypeError that names the option. */
export function readPage(page: DeadLetterPage): { readonly after: string | undefined; readonly limit: number } {
  const { after, limit = 100 } = page
  if (after !== undefined) requireId('after', after)
  return { after, limit: requireWhole('limit', limit, 1) }
}

/** @throws TypeError that names the option. */
export function readGrace(options: CloseOptions): number {
  return requireWhole('graceMs', options?.graceMs, 0)
}

/** Lowercase only: engines that store the 16 bytes take the other spelling for the same id, and others do not. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function requireId(name: string, value: unknown): void {
  if (typeof value === 'string' && UUID.test(value)) return
  throw invalidOption(name, 'must be a lowercase UUID', show(value), 'Pass an id from crypto.randomUUID().')
}

/** @throws TypeError that names the option. Undefined keeps dead letters for ever. */
export function readRetention(retentionMs: unknown): number | undefined {
  if (retentionMs === undefined) return undefined
  return requireWhole('deadLetterRetentionMs', retentionMs, 1, Number.MAX_SAFE_INTEGER)
}

/** @throws TypeError that names the method or the property. */
export function requireStore(store: QueueStore): void {
  if (typeof store !== 'object' || store === null) {
    throw invalidOption('store', 'must be a QueueStore', String(store), 'Pass an object with its methods.')
  }
  requireMethods('store', store, ['push', 'claim', 'finish', 'release', 'nextDueAt', 'counts', 'close'])
  requireMethods('store', store, ['deadLetters', 'redrive', 'drop', 'jobs', 'remove'])
  if (store.leaseMs === undefined) return
  requireWhole('store.leaseMs', store.leaseMs, 3)
  requireFunction('store.renew', store.renew)
}

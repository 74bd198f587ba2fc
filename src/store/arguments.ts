/** Checks the options of a queue, its store and the arguments of its calls. Every engine uses these checks. */

import { isUint8Array } from 'node:util/types'
import {
  aClock,
  anything,
  invalidOption,
  kindOf,
  type OptionChecks,
  refuseUnknown,
  requireBoolean,
  requireFunction,
  requireInteger,
  requireMethods,
  requireOptions,
  requireText,
  requireTime,
  show,
  whole,
} from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import type { Logger } from '../kit/log.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { CheckedLogPage, CheckedPage, QueueStore } from './queue-store.ts'
import type { HistoryOptions, Job, LogPage, PushOptions, Queue, StoredDeadLetterFilter } from './queue-types.ts'
import { type LettersFrom, type PageBounds, UNLIMITED } from './walk.ts'

/** The options of `createQueue`. */
export interface CreateQueueOptions {
  /** The name of the queue in error messages. The digests of marks depend on it, so all processes of a queue must use the same name. */
  readonly name: string
  /** How often the queue looks for jobs that other processes pushed, in milliseconds. Default: never. */
  readonly pollMs?: number | undefined
  /**
   * How long dead letters are kept, in milliseconds. A queue with a handler drops older dead letters every hour, or every
   * `deadLetterRetentionMs` if that is shorter. Default: forever.
   */
  readonly deadLetterRetentionMs?: number | undefined
  /**
   * Receives the errors of background work, for example when the store fails to claim jobs, to record an outcome or to renew a lease. The
   * queue retries automatically. Default: `logger` receives a line for each error.
   */
  readonly onError?: ((error: HooklineError) => unknown) | undefined
  /**
   * Receives a line for each error, but at most 5 different lines a minute for each error code. Pass pino, or any object with the same
   * methods. Default: the console; with `onError`, no lines are written unless `logger` is set.
   */
  readonly logger?: Logger | undefined
  /** The clock that the queue uses. Default: the machine's clock. */
  readonly clock?: Clock | undefined
}

/** The checks of the options that all engines share. */
export const QUEUE_CHECKS: OptionChecks<CreateQueueOptions> = {
  name: requireText,
  pollMs: whole(1),
  deadLetterRetentionMs: whole(1, Number.MAX_SAFE_INTEGER),
  onError: anything,
  logger: anything,
  clock: aClock,
}

/** Returns the options, with a default in place of each option that is missing or undefined. */
export function withDefaults<Options extends object, Defaults extends Partial<Options>>(
  options: Options,
  defaults: Defaults,
): Omit<Options, keyof Defaults> & Defaults {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) } as Omit<Options, keyof Defaults> & Defaults
}

/** Checks jobs. If several of them have the same id, returns only the first of these. */
export function readJobs(jobs: readonly Job[], name: string, hasGroups = false): readonly Job[] {
  if (!Array.isArray(jobs)) throw invalidOption('jobs', 'must be a list', show(jobs), 'Pass [{ id, body }].')
  for (const job of jobs) requireJob(job)
  if (!hasGroups && jobs.some(({ group }) => group !== undefined)) {
    throw new TypeError(
      `\`group\` needs an engine that supports groups. The engine of queue ${name} does not. ${GROUP_ADVICE}`,
    )
  }
  const ids = new Set<string>()
  return jobs.filter(({ id }) => !ids.has(id) && ids.add(id))
}

function requireJob(job: Job): void {
  requireId('id', job?.id, 'Pass an id from crypto.randomUUID().')
  if (!isUint8Array(job.body)) {
    throw invalidOption('body', 'must be a Uint8Array', kindOf(job.body), 'Pass bytes, for example Buffer.from(text).')
  }
  requireTime('notBefore', job.notBefore)
  if (job.group !== undefined) requireText('group', job.group)
}

export const GROUP_ADVICE = 'Use sqliteQueue, pgBossQueue or memoryQueue.'

/** Checks the options of a push. Returns the `db`; undefined for a push without `db`. */
export function readDb(options: PushOptions | undefined, name: string, hasTransactions = false): object | undefined {
  if (options === undefined) return undefined
  requireOptions('push', options, ['db'])
  if (!('db' in options)) return undefined
  const db: unknown = options.db
  if (typeof db !== 'object' || db === null) {
    throw invalidOption('db', 'must be a transaction', kindOf(db), 'Pass a transaction of your database, or omit `db`.')
  }
  if (hasTransactions) return db
  const advice = 'Use pgBossQueue or sqliteQueue, or omit `db`.'
  throw new TypeError(
    `\`db\` needs an engine that supports transactions. The engine of queue ${name} does not. ${advice}`,
  )
}

/** Checks ids, and returns them without duplicates. Returns undefined for 'all'. */
export function readIds(ids: readonly string[] | 'all'): readonly string[] | undefined {
  if (ids === 'all') return undefined
  if (!Array.isArray(ids))
    throw invalidOption('ids', "must be a list of ids or 'all'", show(ids), "Pass [id] or 'all'.")
  for (const [index, id] of ids.entries()) requireId(`ids[${index}]`, id, LETTER_ADVICE)
  return [...new Set(ids)]
}

export function isFilter(which: readonly string[] | 'all' | StoredDeadLetterFilter): which is StoredDeadLetterFilter {
  return typeof which === 'object' && which !== null && !Array.isArray(which)
}

export function readFilter(which: StoredDeadLetterFilter): StoredDeadLetterFilter {
  refuseUnknown(which, ['olderThan', 'reason', 'matches'])
  const { olderThan, reason, matches } = which
  if (olderThan === undefined && reason === undefined && matches === undefined) {
    throw new TypeError(
      "`drop` must be given `olderThan`, `reason` or `matches`. To drop all dead letters, pass 'all'.",
    )
  }
  requireTime('olderThan', olderThan)
  if (reason !== undefined) requireText('reason', reason, 'handler_failed')
  if (matches !== undefined) requireFunction('matches', matches)
  return which
}

export function readPage(page: LettersFrom & Partial<PageBounds>): CheckedPage {
  const { after, newestFirst = false } = page
  if (after !== undefined) requireId('after', after, LETTER_ADVICE)
  requireBoolean('newestFirst', newestFirst)
  return { after, newestFirst, ...readBounds(page) }
}

export function readLogPage(page: LogPage): CheckedLogPage {
  requireOptions('log', page, ['since', 'until', 'after', 'limit', 'maxBytes'])
  const { since, until, after } = page
  requireTime('since', since)
  requireTime('until', until)
  if (after !== undefined) requireCursor('after', after)
  return { since, until, after, ...readBounds(page) }
}

function readBounds({ limit = 100, maxBytes = UNLIMITED }: Partial<PageBounds>): PageBounds {
  requireInteger('maxBytes', maxBytes, 1, Number.MAX_SAFE_INTEGER)
  return { limit: requireInteger('limit', limit, 1), maxBytes }
}

const CURSOR = /^\d{1,20}(-\d{1,20})?$/

function requireCursor(name: string, cursor: unknown): void {
  if (typeof cursor === 'string' && CURSOR.test(cursor)) return
  throw invalidOption(name, 'must be a cursor', show(cursor), 'Pass the `cursor` of the last listed entry.')
}

/** Checks the history option of a queue, which must have a log. */
export function readHistory(name: string, history: HistoryOptions, { log }: Pick<Queue, 'log'>): HistoryOptions {
  requireOptions(name, history, ['maxAgeMs', 'maxBytes'])
  if (log === undefined) {
    const advice = 'Use one of the queues of Hookline, or add a `log` to your store.'
    throw new TypeError(`\`${name}\` needs a queue with a log. ${advice}`)
  }
  requireInteger(`${name}.maxAgeMs`, history.maxAgeMs, 1, Number.MAX_SAFE_INTEGER)
  if (history.maxBytes !== undefined) requireInteger(`${name}.maxBytes`, history.maxBytes, 1, Number.MAX_SAFE_INTEGER)
  return history
}

/**
 * Only lowercase is accepted. Otherwise, the same id in uppercase and in lowercase would be one id for engines that store the 16 bytes, and
 * two ids for other engines.
 */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const LETTER_ADVICE = 'Pass the `id` of a dead letter.'

function requireId(name: string, value: unknown, advice: string): void {
  if (typeof value === 'string' && UUID.test(value)) return
  throw invalidOption(name, 'must be a lowercase UUID', show(value), advice)
}

export function requireStore(store: QueueStore): void {
  if (typeof store !== 'object' || store === null) {
    throw invalidOption(
      'store',
      'must be a QueueStore',
      show(store),
      'Pass an object that has the methods of a QueueStore.',
    )
  }
  requireMethods('store', store, ['push', 'claim', 'finish', 'release', 'nextDueAt', 'counts', 'close'])
  requireMethods('store', store, ['deadLetters', 'redrive', 'drop', 'jobs', 'remove'])
  if (store.leaseMs === undefined) return
  requireInteger('store.leaseMs', store.leaseMs, 3)
  requireFunction('store.renew', store.renew)
}

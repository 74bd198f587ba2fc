/** Checks the arguments of a queue's calls, and a store: the same for every engine. */

import { isUint8Array } from 'node:util/types'
import {
  invalidOption,
  kindOf,
  refuseUnknown,
  requireFunction,
  requireText,
  requireWhole,
  show,
} from '../options/checks.ts'
import type { CloseOptions, DeadLetterPage, Job, StoredDeadLetterFilter } from './queue.ts'
import type { QueueStore } from './store.ts'

/**
 * The jobs of a push; the first of those that have the same id.
 *
 * @throws TypeError that names the field.
 */
export function readJobs(jobs: readonly Job[]): readonly Job[] {
  if (!Array.isArray(jobs)) throw invalidOption('jobs', 'must be a list', show(jobs), 'Pass [{ id, body }].')
  const byId = new Map<string, Job>()
  for (const job of jobs) {
    requireId('id', job?.id)
    if (!isUint8Array(job.body)) {
      throw invalidOption(
        'body',
        'must be a Uint8Array',
        kindOf(job.body),
        'Pass bytes, for example Buffer.from(text).',
      )
    }
    if (job.notBefore !== undefined && !isTime(job.notBefore)) {
      throw invalidOption('notBefore', 'must be a valid Date', show(job.notBefore), 'Pass a Date, or leave it out.')
    }
    if (!byId.has(job.id)) byId.set(job.id, job)
  }
  return [...byId.values()]
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
  for (const method of ['push', 'claim', 'finish', 'release', 'nextDueAt', 'counts', 'close'] as const) {
    requireFunction(`store.${method}`, store[method])
  }
  for (const method of ['deadLetters', 'redrive', 'drop', 'jobs', 'remove'] as const)
    requireFunction(`store.${method}`, store[method])
  if (store.leaseMs === undefined) return
  requireWhole('store.leaseMs', store.leaseMs, 3)
  requireFunction('store.renew', store.renew)
}

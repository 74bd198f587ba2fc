/** What the calls of a queue are given, checked: the same for every engine. */

import { requireBytes } from '../protocol/body.ts'
import { requireWhole } from '../protocol/options.ts'
import type { CloseOptions, DeadPage, Job } from './queue.ts'

/**
 * The jobs of a push by their ids, so that one that is there twice is there once.
 *
 * @throws TypeError that names the field.
 */
export function readJobs(jobs: readonly Job[]): Map<string, Job> {
  if (!Array.isArray(jobs)) throw new TypeError('jobs: must be a list.')
  const byId = new Map<string, Job>()
  for (const job of jobs) {
    requireId('id', job?.id)
    requireBytes(job.body, 'body')
    if (job.notBefore !== undefined && !Number.isFinite(job.notBefore))
      throw new TypeError('notBefore: must be a time in milliseconds since the epoch.')
    if (!byId.has(job.id)) byId.set(job.id, job)
  }
  return byId
}

/** @throws TypeError for what is neither `all` nor a list of ids. */
export function readIds(ids: readonly string[] | 'all'): readonly string[] | 'all' {
  if (ids === 'all') return ids
  if (!Array.isArray(ids)) throw new TypeError("ids: must be a list of ids, or 'all'.")
  for (const id of ids) requireId('ids', id)
  return ids
}

/** @throws TypeError that names the option. */
export function readPage(page: DeadPage): { readonly after: string | undefined; readonly limit: number } {
  const { after, limit = 100 } = page
  if (after !== undefined) requireId('after', after)
  return { after, limit: requireWhole('limit', limit, 1) }
}

/** @throws TypeError that names the option. */
export function readClose(options: CloseOptions): CloseOptions {
  return { graceMs: requireWhole('graceMs', options?.graceMs, 0) }
}

/** In lower case only: engines that store the 16 bytes take the other spelling for the same id, and others do not. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function requireId(name: string, value: unknown): void {
  if (typeof value === 'string' && UUID.test(value)) return
  throw new TypeError(`${name}: must be a UUID as text, in lower case.`)
}

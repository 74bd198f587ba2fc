/** The store of a queue in a SQLite file: what each call of the contract does with the rows of its jobs. */

import type { ClaimedJob, QueueUse } from '../api.ts'
import type { QueueStore } from '../store.ts'
import { type QueueFile, unavailable } from './file.ts'
import type { ClaimRef, Completed } from './jobs.ts'
import type { Settings } from './options.ts'
import { pushInto } from './transaction.ts'

export type SqliteClaim = ClaimedJob & ClaimRef

export function createSqliteStore(settings: Settings, file: QueueFile): QueueStore<SqliteClaim> {
  const { name, clock } = settings
  const { call } = file
  const now = (): number => Math.floor(clock.now())
  let nextDueAt: { readonly at: number | undefined } | undefined
  let use: QueueUse | undefined
  let batch: { readonly claims: Completed[]; readonly isDone: Promise<void> } | undefined

  /** Those of one turn are one call, which may be made again. */
  function complete(claim: Completed): Promise<void> {
    if (batch === undefined) {
      const claims: Completed[] = []
      const isDone = call('write', (jobs, row) => {
        if (batch?.claims === claims) batch = undefined
        jobs.complete(row, claims, now(), settings)
      })
      batch = { claims, isDone }
      isDone.catch(() => {
        if (batch?.claims === claims) batch = undefined
      })
    }
    batch.claims.push(claim)
    return batch.isDone
  }

  return {
    isDurable: true,
    isOrdered: true,
    place: `sqlite ${file.path} ${name}`,
    reserve(given) {
      use = given
      try {
        file.reserve(use)
      } catch (cause) {
        throw unavailable(`Queue ${name}`, file.path, cause)
      }
    },
    hasTransactions: true,
    hasGroups: true,
    push(jobs, { db } = {}) {
      if (db !== undefined) return pushInto(db, file.path, { ...settings, use }, jobs, now())
      const bytes = jobs.reduce((sum, { body }) => sum + body.byteLength, 0)
      return call('promise', (rows, row) => rows.push(row, settings, jobs, now()), bytes)
    },
    async claim(limit, onUnreadable) {
      const claims = await call('claim', (jobs, row) => jobs.claim(row, file.nextClaim(), limit, now()))
      for (const letter of claims.unreadable) onUnreadable?.(letter)
      nextDueAt = { at: claims.nextDueAt }
      return claims.jobs
    },
    save: (claim, retryState) => call('write', (jobs) => jobs.save(claim, retryState)),
    finish(claim, outcome) {
      if ('complete' in outcome) return complete({ ...claim, log: outcome.log })
      return call('write', (jobs, row) => jobs.finish(row, claim, outcome, now()))
    },
    release: (claims, { wereHandled }) => call('release', (jobs, row) => jobs.release(row, claims, wereHandled)),
    /** Each claim answers it, so it is asked for only where no claim was made before. */
    async nextDueAt() {
      const at = nextDueAt === undefined ? await call('read', (jobs, row) => jobs.nextDueAt(row)) : nextDueAt.at
      nextDueAt = undefined
      return at === undefined ? undefined : new Date(at)
    },
    counts: () => call('read', (jobs, row) => jobs.counts(row, now())),
    deadLetters: (page) => call('read', (jobs, row) => jobs.letters(row, page)),
    redrive: (ids) => call('promise', (jobs, row) => jobs.redrive(row, settings, ids, now())),
    drop: (ids) => call('erase', (jobs, row) => jobs.drop(row, ids)),
    async *jobs() {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const from: number = after
        const { jobs, last } = await call('read', (rows, row) => rows.stored(row.queue, from))
        yield jobs
        after = last
      }
    },
    remove: (ids) => call('erase', (jobs, row) => jobs.remove(row, ids)),
    log: {
      list: (page) => call('read', (jobs, row) => jobs.logged(row.queue, page)),
      trim: (which) => call('write', (jobs, row) => jobs.trim(row, which)),
      remove: (cursors) => call('erase', (jobs, row) => jobs.removeLogged(row, cursors)),
    },
    onChange: file.onDue,
    async close() {
      await file.close()
      return []
    },
  }
}

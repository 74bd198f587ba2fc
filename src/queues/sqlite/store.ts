/** The store of a queue in a SQLite file: each of its calls is a request to the worker thread of the file; an observer has none. */

import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { BUSY, resultOf } from '../../sqlite/file.ts'
import type { ClaimedJob, HandledJob, Outcome } from '../api.ts'
import type { QueueStore } from '../store.ts'
import type { Connection } from './connection.ts'
import { groupOf } from './groups.ts'
import type { HandledRow } from './history.ts'
import type { Settings } from './options.ts'
import type { DeadLetterRow, StoredPage } from './stored.ts'
import { bytesOfId, createQueues, enterFile, type QueueRow, textOfId } from './tables.ts'
import {
  type ClaimRef,
  type Claims,
  type Letters,
  type QueueSettings,
  type Request,
  unavailable,
} from './thread-messages.ts'
import { alone, runAlone } from './thread-requests.ts'
import { pushInto } from './transaction.ts'

export type SqliteClaim = ClaimedJob & ClaimRef

export function createSqliteStore(settings: Settings, connection: Connection): QueueStore<SqliteClaim> {
  const { name, clock, dedupeWindowMs, maxJobs, timeoutMs } = settings
  let queue: QueueSettings = { name, dedupeWindowMs, maxJobs, timeoutMs }
  let nextDueAt: { readonly at: number | undefined } | undefined
  let stopListening = (): void => {}

  const send = <T>(request: Request): Promise<T> => connection.send(request) as Promise<T>

  /** Changes all dead letters, some at a time: not those that fail meanwhile. */
  async function changeAll(change: (letters: Letters) => Promise<number>): Promise<number> {
    const { deadLetters } = await send<QueueRow>({ kind: 'counts', queue, now: now() })
    for (let count = 0; ; ) {
      const changed = await change({ ids: 'all', limit: Math.min(deadLetters - count, CHANGED_AT_ONCE) })
      count += changed
      if (changed === 0 || count === deadLetters) return count
    }
  }

  const now = (): number => Math.floor(clock.now())

  return {
    isDurable: true,
    isOrdered: true,
    place: `sqlite ${connection.path} ${name}`,
    reserve(use) {
      queue = { ...queue, use }
      try {
        enterFile(connection.path, queue)
      } catch (cause) {
        throw unavailable(`Queue ${name}`, connection.path, cause)
      }
    },
    hasTransactions: true,
    groups: { canHold: true },
    push(jobs, { db } = {}) {
      const at = now()
      const rows = jobs.map(({ id, body, notBefore, group }) => ({
        dueAt: notBefore?.getTime() ?? at,
        group: groupOf(group),
        id: bytesOfId(id),
        body,
      }))
      const push = { kind: 'push', now: at, jobs: rows } as const
      return db === undefined ? send({ queue, ...push }) : pushInto(db, connection.path, queue, push)
    },
    async claim(limit, onUnreadable) {
      const at = now()
      const claims = await send<Claims>({ kind: 'claim', queue, now: at, limit, claim: connection.nextClaim() })
      for (const letter of claims.unreadable) {
        onUnreadable?.({ ...letter, body: new Uint8Array(), retryState: undefined, failedAt: new Date(at) })
      }
      nextDueAt = { at: claims.nextDueAt }
      return claims.jobs.map((row) => {
        const id = textOfId(row.id) as string
        return { ...row, id, firstAt: new Date(row.firstAt), dueAt: new Date(row.dueAt) }
      })
    },
    save: ({ seq, claim, group }, retryState) => send({ kind: 'save', queue, seq, claim, group, retryState }),
    finish: ({ seq, claim, group }, outcome) =>
      send({ kind: 'finish', queue, now: now(), seq, claim, group, ...fieldsOf(outcome) }),
    /** Until it is done: the claims of a process that lives never lapse by themselves. */
    release(jobs, { wereHandled }) {
      const claims = jobs.map(({ seq, claim, group }) => ({ seq, claim, group }))
      return connection.sendUntilDone({ kind: 'release', queue, claims, wereHandled })
    },
    /** Each claim answers it, so it is asked for only where no claim was made before. */
    async nextDueAt() {
      const at = nextDueAt === undefined ? await send<number | undefined>({ kind: 'nextDueAt', queue }) : nextDueAt.at
      nextDueAt = undefined
      return at === undefined ? undefined : new Date(at)
    },
    async counts() {
      const asOf = now()
      type Counts = QueueRow & Record<'oldestDueAt' | 'retrying', number | undefined>
      const { waiting, active, deadLetters, ...rest } = await send<Counts>({ kind: 'counts', queue, now: asOf })
      const { oldestDueAt: at, retrying } = rest
      const counted = { waiting, active, deadLetters, ...(retrying !== undefined && { retrying }) }
      return { ...counted, oldestDueAt: at === undefined ? undefined : new Date(at), asOf: new Date(asOf) }
    },
    async deadLetters(page) {
      const rows = await send<readonly DeadLetterRow[]>({ kind: 'deadLetters', queue, ...page })
      return rows.map((row) => ({ ...row, failedAt: new Date(row.failedAt) }))
    },
    redrive(ids) {
      const redrive = (letters: Letters) => send<number>({ kind: 'redrive', queue, now: now(), ...letters })
      return ids === 'all' ? changeAll(redrive) : redrive({ ids, limit: 0 })
    },
    drop(ids) {
      const drop = (letters: Letters) => send<number>({ kind: 'drop', queue, ...letters })
      return ids === 'all' ? changeAll(drop) : drop({ ids, limit: 0 })
    },
    async *jobs() {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page: StoredPage = await send({ kind: 'jobs', queue, after, limit: LISTED_AT_ONCE })
        yield page.rows
        after = page.last
      }
    },
    remove: (ids) => send<number>({ kind: 'remove', queue, ids }),
    history: {
      countsBytes: true,
      list: async (page) => (await send<readonly HandledRow[]>({ kind: 'history', queue, ...page })).map(toHandled),
      find: async (ids) => (await send<readonly HandledRow[]>({ kind: 'findHandled', queue, ids })).map(toHandled),
      async replay(jobs) {
        const at = now()
        return { ids: await send<readonly string[]>({ kind: 'replay', queue, now: at, jobs }), at: new Date(at) }
      },
      note: (name, text) => send({ kind: 'note', queue, name, text }),
      drop({ before, maxBytes, limit }) {
        const windowStart = now() - dedupeWindowMs
        return send({ kind: 'dropHandled', queue, before: before.getTime(), maxBytes, limit, windowStart })
      },
    },
    onChange(listener) {
      stopListening = connection.onDue(name, listener)
    },
    async close() {
      stopListening()
      await connection.close()
      return []
    },
  }
}

const CHANGED_AT_ONCE = 500
const LISTED_AT_ONCE = 200

function fieldsOf(outcome: Outcome) {
  const none = { retryAt: 0, reason: undefined, retryState: undefined }
  if ('complete' in outcome) {
    const { keep } = outcome
    return keep === undefined
      ? { ...none, outcome: 'complete' as const }
      : { ...none, outcome: 'keep' as const, retryState: keep }
  }
  const kept = { ...none, retryState: outcome.retryState }
  if ('retryAt' in outcome) {
    const { retryAt, holdsGroup } = outcome
    return { ...kept, outcome: holdsGroup ? ('hold' as const) : ('retry' as const), retryAt: retryAt.getTime() }
  }
  return { ...kept, outcome: 'deadLetter' as const, reason: Buffer.from(outcome.deadLetter) }
}

function toHandled({ handledAt, ...row }: HandledRow): HandledJob {
  return { ...row, handledAt: new Date(handledAt) }
}

export function observeFile(path: string): Connection {
  return {
    send: (request) => {
      const { name, timeoutMs } = request.queue
      return whenFree(`Queue ${name}`, path, timeoutMs, () => runAlone(path, request))
    },
    sendUntilDone: async () => {},
    nextClaim: () => 0,
    onDue: () => () => {},
    path,
    close: async () => {},
  }
}

export function listQueues(path: string, timeoutMs: number): Promise<string[]> {
  return whenFree('An observer', path, timeoutMs, () => alone(path, (database) => createQueues(database).names()))
}

async function whenFree<T>(subject: string, path: string, timeoutMs: number, step: () => T): Promise<T> {
  await nextTurn()
  for (const end = performance.now() + timeoutMs; ; await delay(1)) {
    try {
      return step()
    } catch (error) {
      if (resultOf(error) === BUSY && performance.now() < end) continue
      throw unavailable(subject, path, error)
    }
  }
}

/** The store of a queue in a SQLite file: each of its calls is a request to the worker thread of the file; an observer has none. */

import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { HooklineError } from '../../message/error.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import { BUSY, resultOf } from '../../sqlite/file.ts'
import type { ClaimedJob, Outcome } from '../queue.ts'
import type { QueueStore } from '../store.ts'
import type { Connection } from './connection.ts'
import { createReserve, type QueueRow, type Reservation } from './counts.ts'
import type { Settings } from './options.ts'
import { namesIn, runAlone } from './requests.ts'
import type { ClaimRef, Claims, QueueSettings, Request } from './rpc.ts'
import type { DeadLetterRow, StoredJobs, StoredRequest } from './stored.ts'
import { bytesOfId, inFile, textOfId } from './tables.ts'

/** A claimed job, and which claim it is. */
export type SqliteClaim = ClaimedJob & ClaimRef

/** Creates the store of one queue. */
export function createSqliteStore(settings: Settings, connection: Connection): QueueStore<SqliteClaim> {
  const { name, clock, dedupeWindowMs, maxJobs, timeoutMs } = settings
  let queue: QueueSettings = { name, dedupeWindowMs, maxJobs, timeoutMs }
  let nextDueAt: { readonly at: number | undefined } | undefined

  function send<T>(request: Request): Promise<T> {
    return connection.send(request) as Promise<T>
  }

  /** In pieces, so that other requests are not kept waiting. */
  async function dropAll(): Promise<number> {
    for (let count = 0; ; ) {
      const dropped = await send<number>({ kind: 'drop', queue, ids: [], oldest: DROPPED_AT_ONCE })
      count += dropped
      if (dropped < DROPPED_AT_ONCE) return count
    }
  }

  const now = (): number => Math.floor(clock.now())

  return {
    isDurable: true,
    isOrdered: true,
    place: `sqlite ${connection.path} ${name}`,
    reserve(use) {
      reserveInFile(connection.path, { name, use })
      queue = { ...queue, use }
    },
    push(jobs) {
      return send({
        kind: 'push',
        queue,
        now: now(),
        ids: jobs.map(({ id }) => bytesOfId(id)),
        notBefore: jobs.map(({ notBefore }) => notBefore?.getTime()),
        bodies: jobs.map(({ body }) => body),
      })
    },
    async claim(limit, onUnreadable) {
      const at = now()
      const claims = await send<Claims>({ kind: 'claim', queue, now: at, limit, claim: connection.nextClaim() })
      for (const letter of claims.unreadable) {
        onUnreadable?.({ ...letter, body: new Uint8Array(), retryState: undefined, failedAt: dateOf(at) })
      }
      nextDueAt = { at: claims.nextDueAt }
      return claims.jobs.map((row) => {
        const id = textOfId(row.id) as string
        return { ...row, id, firstAt: dateOf(row.firstAt), dueAt: dateOf(row.dueAt) }
      })
    },
    finish: ({ seq, claim }, outcome) => send({ kind: 'finish', queue, now: now(), seq, claim, ...fieldsOf(outcome) }),
    /** Until it is done: the claims of a process that lives never lapse by themselves. */
    release(jobs, { wereHandled }) {
      const claims = jobs.map(({ seq, claim }) => ({ seq, claim }))
      return connection.sendUntilDone({ kind: 'release', queue, claims, wereHandled })
    },
    /** Each claim answers it, so it is asked for only where no claim was made before. */
    async nextDueAt() {
      const at = nextDueAt === undefined ? await send<number | undefined>({ kind: 'nextDueAt', queue }) : nextDueAt.at
      nextDueAt = undefined
      return at === undefined ? undefined : dateOf(at)
    },
    async counts() {
      const asOf = now()
      type Counts = QueueRow & Record<'oldestDueAt' | 'retrying', number | undefined>
      const { waiting, active, deadLetters, ...rest } = await send<Counts>({ kind: 'counts', queue, now: asOf })
      const { oldestDueAt: at, retrying } = rest
      const counted = { waiting, active, deadLetters, ...(retrying !== undefined && { retrying }) }
      return { ...counted, oldestDueAt: at === undefined ? undefined : dateOf(at), asOf: dateOf(asOf) }
    },
    async deadLetters({ after, limit }) {
      const rows = await send<readonly DeadLetterRow[]>({ kind: 'deadLetters', queue, after, limit })
      return rows.map((row) => ({ ...row, failedAt: dateOf(row.failedAt) }))
    },
    redrive: (ids) => send<number>({ kind: 'redrive', queue, now: now(), ids }),
    drop: (ids) => (ids === 'all' ? dropAll() : send<number>({ kind: 'drop', queue, ids, oldest: 0 })),
    async *jobs() {
      type Page = ReturnType<StoredJobs['page']>
      for (let after = 0; after < Number.MAX_SAFE_INTEGER; ) {
        const { rows, last } = await send<Page>({ kind: 'jobs', queue, after, limit: LISTED_AT_ONCE })
        yield rows
        after = last
      }
    },
    remove: (ids) => send<number>({ kind: 'remove', queue, ids }),
    async close() {
      await connection.close()
      return []
    },
  }
}

const DROPPED_AT_ONCE = 500
const LISTED_AT_ONCE = 200

/** A time of the file. What a Date cannot hold becomes the latest or earliest that it can. */
function dateOf(ms: number): Date {
  return new Date(Math.max(-LATEST, Math.min(ms, LATEST)))
}

const LATEST = 8.64e15

function fieldsOf(outcome: Outcome) {
  const none = { retryAt: 0, reason: undefined, retryState: undefined }
  if ('complete' in outcome) return { ...none, outcome: 'complete' as const }
  const { retryState } = outcome
  if ('retryAt' in outcome) {
    return { ...none, outcome: 'retry' as const, retryAt: outcome.retryAt.getTime(), retryState }
  }
  return { ...none, outcome: 'deadLetter' as const, reason: Buffer.from(outcome.deadLetter), retryState }
}

/**
 * Reserves a queue in a file that is not open here, so that another use is refused when the queue is given to it.
 *
 * @throws HooklineError `queue_unavailable`, also when the file cannot be used.
 */
function reserveInFile(path: string, reservation: Reservation): void {
  try {
    inFile(path, (database) => createReserve(database)(reservation))
  } catch (cause) {
    if (cause instanceof HooklineError) throw cause
    throw new HooklineError('queue_unavailable', cannotUse(`Queue ${reservation.name}`, path, cause), { cause })
  }
}

/** The connection of an observer: each request opens the file in this thread and closes it again. */
export function observeFile(path: string): Connection {
  return {
    send: (request) => {
      const { name, timeoutMs } = request.queue
      return whenFree(`Queue ${name}`, path, timeoutMs, () => runAlone(path, request as StoredRequest))
    },
    sendUntilDone: async () => {},
    nextClaim: () => 0,
    path,
    close: async () => {},
  }
}

/** The names of the queues in a file. Changes nothing. */
export function listQueues(path: string, timeoutMs: number): Promise<string[]> {
  return whenFree('An observer', path, timeoutMs, () => namesIn(path))
}

/** Makes a step, after what is under way, and again while another process has the file locked. Waiting does not block the thread. */
async function whenFree<T>(subject: string, path: string, timeoutMs: number, step: () => T): Promise<T> {
  await nextTurn()
  for (const end = performance.now() + timeoutMs; ; await delay(1)) {
    try {
      return step()
    } catch (cause) {
      if (cause instanceof HooklineError) throw cause
      if (resultOf(cause) === BUSY && performance.now() < end) continue
      throw new HooklineError('queue_unavailable', cannotUse(subject, path, cause), { cause })
    }
  }
}

/** What is stored, as a user sees it: the jobs that wait or are claimed, and the dead letters. Counts, lists and deletes them. */

import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { checkpoint, connectTo, retryWhileBusy, UnusableFile } from '../../sqlite/file.ts'
import type { DeadLetter } from '../queue.ts'
import { PHASE, type QueueRow } from './counts.ts'
import type { DueJobs } from './due.ts'
import { type Pushes, requireRoom } from './pushes.ts'
import type { QueueSettings, Request } from './rpc.ts'
import { bytesOfId, CHECK_PATH, NO_ID, NUMBERS, type OpenTables, prepareObserver, textOfId } from './tables.ts'

/** A job, and its number, which stays the same while it is stored. */
interface StoredRow {
  readonly seq: number
  readonly id: string
  readonly body: Uint8Array
}

/** What can be done with jobs that wait or are claimed, whatever happens to them meanwhile. Only those that wait are deleted. */
export interface StoredJobs {
  /** Those after this `seq`; a job whose id cannot be read is left out. */
  page(queue: number, after: number, limit: number): { readonly rows: readonly StoredRow[]; readonly last: number }
  remove(row: QueueRow, ids: readonly string[]): number
}

function createStoredJobs({ database }: OpenTables, pushes: Pushes): StoredJobs {
  const list = database.prepare(`
    SELECT seq, id FROM hookline_queue_jobs WHERE seq > ? AND seq < ? AND phase <> ${PHASE.deadLetter} ORDER BY seq LIMIT ?`)
  const remove = database.prepare(`
    DELETE FROM hookline_queue_jobs WHERE seq = ? AND phase IN (${PHASE.due}, ${PHASE.later})`)

  return {
    page(queue, after, limit) {
      const found = list.all(Math.max(after, queue * NUMBERS), (queue + 1) * NUMBERS, limit)
      const rows = found.flatMap(({ seq, id: bytes }) => {
        const id = textOfId(bytes)
        return id === undefined
          ? []
          : { seq: seq as number, id, body: pushes.bodyOf(seq as number) ?? new Uint8Array() }
      })
      return { rows, last: (found.at(-1)?.seq as number | undefined) ?? Number.MAX_SAFE_INTEGER }
    },
    remove(row, ids) {
      let count = 0
      for (const id of ids.map(bytesOfId)) {
        const seq = pushes.seqOf(row.queue, id)
        if (seq === undefined || remove.run(seq).changes === 0) continue
        pushes.removeBody(seq)
        pushes.forget(row.queue, id)
        count += 1
      }
      row.waiting -= count
      return count
    },
  }
}

/** A dead letter, with its time in milliseconds since the epoch. */
export type DeadLetterRow = Omit<DeadLetter, 'failedAt'> & { readonly failedAt: number }

/** What can be done with dead letters. */
interface DeadLetters {
  page(queue: number, after: string | undefined, limit: number): DeadLetterRow[]
  redrive(row: QueueRow, settings: QueueSettings, ids: readonly string[] | 'all', now: number): number
  /** Drops these ids, and so many of the oldest. */
  drop(row: QueueRow, ids: readonly string[], oldest: number): number
}

function createDeadLetters({ database }: OpenTables, pushes: Pushes): DeadLetters {
  const find = database.prepare(`
    SELECT seq, place FROM hookline_queue_jobs WHERE seq = ? AND queue = ? AND phase = ${PHASE.deadLetter}`)
  const page = database.prepare(`
    SELECT seq, id, reason, retry_state AS retryState, due_at AS failedAt FROM hookline_queue_jobs
    WHERE queue = ? AND phase = ${PHASE.deadLetter} AND place > ? ORDER BY place LIMIT ?`)
  const list = database.prepare(`
    SELECT seq FROM hookline_queue_jobs WHERE queue = ? AND phase = ${PHASE.deadLetter} ORDER BY place LIMIT ?`)
  const idOf = database.prepare('SELECT id FROM hookline_queue_jobs WHERE seq = ?')
  const redrive = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = ${PHASE.due}, place = ?, due_at = ?, claim_count = 0, first_at = NULL, retry_state = NULL, reason = NULL
    WHERE seq = ?`)
  const remove = database.prepare('DELETE FROM hookline_queue_jobs WHERE seq = ?')

  function rowOf(queue: number, id: string): { readonly seq: number; readonly place: number } | undefined {
    const seq = pushes.seqOf(queue, bytesOfId(id))
    return seq === undefined ? undefined : (find.get(seq, queue) as { seq: number; place: number } | undefined)
  }

  function seqsOf(queue: number, ids: readonly string[]): number[] {
    return ids.flatMap((id) => rowOf(queue, id)?.seq ?? [])
  }

  function seqsOfOldest(queue: number, limit: number): number[] {
    return (list.all(queue, limit) as { seq: number }[]).map(({ seq }) => seq)
  }

  return {
    page(queue, after, limit) {
      const place = after === undefined ? undefined : rowOf(queue, after)?.place
      return page.all(queue, place ?? 0, limit).map((row) => ({
        id: textOfId(row.id) ?? NO_ID,
        body: pushes.bodyOf(row.seq as number) ?? new Uint8Array(),
        reason: String(Buffer.from((row.reason ?? '') as Uint8Array)),
        retryState: (row.retryState ?? undefined) as Uint8Array | undefined,
        failedAt: row.failedAt as number,
      }))
    },
    redrive(row, settings, ids, now) {
      const seqs = ids === 'all' ? seqsOfOldest(row.queue, row.deadLetters) : seqsOf(row.queue, ids)
      requireRoom(row, settings, seqs.length)
      for (const seq of seqs) redrive.run(row.next++, now, seq)
      row.deadLetters -= seqs.length
      row.waiting += seqs.length
      return seqs.length
    },
    drop(row, ids, oldest) {
      const seqs = [...seqsOf(row.queue, ids), ...seqsOfOldest(row.queue, oldest)]
      for (const seq of seqs) {
        pushes.forget(row.queue, idOf.get(seq)?.id as Uint8Array)
        remove.run(seq)
        pushes.removeBody(seq)
      }
      row.deadLetters -= seqs.length
      return seqs.length
    },
  }
}

/** A request about what is stored: those that an observer makes. */
export type StoredRequest = Extract<
  Request,
  { readonly kind: 'nextDueAt' | 'counts' | 'deadLetters' | 'redrive' | 'drop' | 'jobs' | 'remove' }
>

/** Creates the function that carries them out, over an open file. */
export function createStored(
  tables: OpenTables,
  pushes: Pushes,
  due: DueJobs,
): (row: QueueRow, request: StoredRequest) => unknown {
  const deadLetters = createDeadLetters(tables, pushes)
  const storedJobs = createStoredJobs(tables, pushes)
  return (row, request) => {
    switch (request.kind) {
      case 'nextDueAt':
        return due.nextDueAt(row.queue)
      case 'counts':
        return { ...row, oldestDueAt: due.oldestDueAt(row.queue, request.now), retrying: due.retrying(row.queue) }
      case 'deadLetters':
        return deadLetters.page(row.queue, request.after, request.limit)
      case 'redrive':
        return deadLetters.redrive(row, request.queue, request.ids, request.now)
      case 'drop':
        return deadLetters.drop(row, request.ids, request.oldest)
      case 'jobs':
        return storedJobs.page(row.queue, request.after, request.limit)
      case 'remove':
        return storedJobs.remove(row, request.ids)
    }
  }
}

/** An observer locks the file for these only. */
export const CHANGES: ReadonlySet<Request['kind']> = new Set(['redrive', 'drop', 'remove'])

/** What a user has deleted: nothing of it stays in the log either. */
export const ERASES: ReadonlySet<Request['kind']> = new Set(['drop', 'remove'])

/** It holds older copies of what was deleted. Not while another process reads or writes: a later checkpoint overwrites them. */
export function eraseLog(database: DatabaseSync, timeoutMs: number): void {
  try {
    retryWhileBusy(() => checkpoint(database, 'TRUNCATE'), timeoutMs)
  } catch {
    // The deletion itself is done.
  }
}

/** Opens a file for an observer, and closes it after the step: what that began and has not committed is rolled back. */
export function alone<T>(path: string, step: (database: DatabaseSync) => T): T {
  if (!existsSync(path)) throw new UnusableFile(`it does not exist. Got no file. ${CHECK_PATH}`)
  const database = connectTo(path)
  try {
    prepareObserver(database)
    return step(database)
  } finally {
    database.close()
  }
}

/** The dead letters: listing, redriving and dropping them. */

import type { DeadLetter } from '../queue.ts'
import { PHASE, type QueueRow } from './counts.ts'
import { type Pushes, requireRoom } from './pushes.ts'
import type { QueueSettings } from './rpc.ts'
import { bytesOfId, NO_ID, type OpenTables, textOfId } from './tables.ts'

/** A dead letter, with its time in milliseconds since the epoch. */
export type DeadLetterRow = Omit<DeadLetter, 'failedAt'> & { readonly failedAt: number }

/** What can be done with them. */
export interface DeadLetters {
  page(queue: number, after: string | undefined, limit: number): DeadLetterRow[]
  redrive(row: QueueRow, settings: QueueSettings, ids: readonly string[] | 'all', now: number): number
  /** Drops these ids, and so many of the oldest. */
  drop(row: QueueRow, ids: readonly string[], oldest: number): number
}

/** Creates it over an open file. */
export function createDeadLetters({ database }: OpenTables, pushes: Pushes): DeadLetters {
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

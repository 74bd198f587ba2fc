/** The dead of a queue in a file. Every call is made within a transaction. */

import { HooklineError } from '../protocol/error.ts'
import type { DeadJob } from './queue.ts'
import { noting } from './sqlite-damage.ts'
import { bytesOfId, textOfId } from './sqlite-id.ts'
import type { Shelf } from './sqlite-jobs.ts'

/** What can be done with them. */
export interface Dead {
  page(after: string | undefined, limit: number): DeadJob[]
  redrive(ids: readonly string[] | 'all', now: number): number
  /** Forgets these, and so many of those that are dead the longest. */
  drop(ids: readonly string[], oldest: number): number
}

/** Makes the list. */
export function createDead({ database, queue, name, maxJobs, ids, tally, damaged }: Shelf): Dead {
  const find = database.prepare(`
    SELECT seq, place FROM hookline_queue_jobs WHERE seq = ? AND queue = ${queue} AND phase = 3`)
  const page = database.prepare(`
    SELECT seq, id, reason, state, due_at AS diedAt FROM hookline_queue_jobs
    WHERE queue = ${queue} AND phase = 3 AND place > ? ORDER BY place LIMIT ?`)
  const list = database.prepare(`
    SELECT seq FROM hookline_queue_jobs WHERE queue = ${queue} AND phase = 3 ORDER BY place LIMIT ?`)
  const idOf = database.prepare('SELECT id FROM hookline_queue_jobs WHERE seq = ?')
  const readBody = database.prepare('SELECT body FROM hookline_queue_bodies WHERE seq = ?')
  const revive = database.prepare(`
    UPDATE hookline_queue_jobs
    SET phase = 0, place = ?, due_at = ?, deliveries = 0, first_at = NULL, owner = NULL, state = NULL, reason = NULL
    WHERE seq = ?`)
  const remove = database.prepare('DELETE FROM hookline_queue_jobs WHERE seq = ?')
  const removeBody = database.prepare('DELETE FROM hookline_queue_bodies WHERE seq = ?')

  function rowOf(id: string): { readonly seq: number; readonly place: number } | undefined {
    const seq = ids.seqOf(bytesOfId(id))
    return seq === undefined ? undefined : (find.get(seq) as { seq: number; place: number } | undefined)
  }

  function seqsOf(wanted: readonly string[]): number[] {
    return [...new Set(wanted)].flatMap((id) => rowOf(id)?.seq ?? [])
  }

  function seqsOfOldest(limit: number): number[] {
    return (list.all(limit) as { seq: number }[]).map(({ seq }) => seq)
  }

  /** What lies on a damaged page is listed without: the next time, when it is known. */
  function bodyOf(seq: number): Uint8Array {
    const body = damaged.has(seq) ? undefined : noting(damaged, seq, () => readBody.get(seq))?.body
    return body instanceof Uint8Array ? body : new Uint8Array()
  }

  /** It stays, out of reach, where its page is damaged. */
  function dropBody(seq: number): void {
    if (!damaged.has(seq)) noting(damaged, seq, () => removeBody.run(seq))
  }

  return {
    page(after, limit) {
      const place = after === undefined ? undefined : rowOf(after)?.place
      return page.all(place ?? 0, limit).map((row) => ({
        id: idOr(row.id),
        body: bodyOf(row.seq as number),
        reason: String(Buffer.from((row.reason ?? '') as Uint8Array)),
        state: (row.state ?? undefined) as Uint8Array | undefined,
        diedAt: row.diedAt as number,
      }))
    },
    redrive(wanted, now) {
      const seqs = wanted === 'all' ? seqsOfOldest(tally.dead) : seqsOf(wanted)
      if (tally.waiting + tally.active + seqs.length > maxJobs) {
        throw new HooklineError(
          'queue_full',
          `The queue ${name} would go over its maxJobs, ${maxJobs}. Re-drive fewer, or raise it.`,
        )
      }
      for (const seq of seqs) revive.run(tally.next++, now, seq)
      tally.dead -= seqs.length
      tally.waiting += seqs.length
      return seqs.length
    },
    drop(wanted, oldest) {
      const seqs = oldest > 0 ? seqsOfOldest(oldest) : seqsOf(wanted)
      for (const seq of seqs) {
        ids.forget(idOf.get(seq)?.id as Uint8Array)
        remove.run(seq)
        dropBody(seq)
      }
      tally.dead -= seqs.length
      return seqs.length
    },
  }
}

function idOr(bytes: unknown): string {
  try {
    return textOfId(bytes)
  } catch {
    return '00000000-0000-0000-0000-000000000000'
  }
}

/** Stores jobs and their bodies, and knows their ids: until they are deleted, or for the dedupe window after they are complete. */

import { HooklineError } from '../../message/error.ts'
import { notingDamage } from '../../sqlite/damage.ts'
import type { QueueRow } from './counts.ts'
import type { Push, QueueSettings } from './rpc.ts'
import { NUMBERS, type OpenTables } from './tables.ts'

/** What can be done. */
export interface Pushes {
  push(row: QueueRow, settings: QueueSettings, request: Push): void
  /** The job that an id was given to. */
  seqOf(queue: number, id: Uint8Array): number | undefined
  forget(queue: number, id: Uint8Array): void
  /** The body of a job; undefined when it is missing or lies on a damaged page, which is noted so that the next transaction avoids it. */
  bodyOf(seq: number): Uint8Array | undefined
  /** Deletes the body of a job; leaves one on a damaged page, out of reach. */
  removeBody(seq: number): void
  /** Looks at the ids of so many complete jobs, and forgets those whose dedupe window is over. */
  prune(queue: number, limit: number, dedupeWindowMs: number, now: number): void
}

/** @throws HooklineError `queue_full` when so many more jobs do not fit, before anything is written. */
export function requireRoom({ waiting, active }: QueueRow, { name, maxJobs }: QueueSettings, more: number): void {
  const jobs = waiting + active + more
  if (more === 0 || jobs <= maxJobs) return
  const message = `Queue ${name} is full: its maxJobs is ${maxJobs}. Got ${jobs} jobs. Push again later, or raise maxJobs.`
  throw new HooklineError('queue_full', message)
}

/** Creates it over an open file. */
export function createPushes({ database, damaged }: OpenTables): Pushes {
  const insert = database.prepare(`
    INSERT INTO hookline_queue_jobs (seq, queue, id, phase, place, due_at, claim_count) VALUES (?, ?, ?, ?, ?, ?, 0)`)
  const insertBody = database.prepare('INSERT INTO hookline_queue_bodies (seq, body) VALUES (?, ?)')
  const readBody = database.prepare('SELECT body FROM hookline_queue_bodies WHERE seq = ?')
  const removeBody = database.prepare('DELETE FROM hookline_queue_bodies WHERE seq = ?')
  const insertId = database.prepare('INSERT OR IGNORE INTO hookline_queue_ids (queue, id, seq) VALUES (?, ?, ?)')
  const find = database.prepare('SELECT seq FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const assign = database.prepare('UPDATE hookline_queue_ids SET seq = ? WHERE queue = ? AND id = ?')
  const remove = database.prepare('DELETE FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const completedAt = database.prepare('SELECT completed_at AS at FROM hookline_queue_completed WHERE seq = ?')
  const setCompleted = database.prepare(`
    INSERT OR REPLACE INTO hookline_queue_completed (seq, id, completed_at) VALUES (?, ?, ?)`)
  const unsetCompleted = database.prepare('DELETE FROM hookline_queue_completed WHERE seq = ?')
  const lastCompleted = database.prepare(`
    SELECT seq FROM hookline_queue_completed WHERE seq > ? AND seq < ? ORDER BY seq LIMIT 1 OFFSET ?`)
  const overOrAhead = database.prepare(`
    SELECT seq, id, completed_at AS at FROM hookline_queue_completed
    WHERE seq > ? AND seq <= ? AND (completed_at <= ? OR completed_at > ?)`)
  const prunedTo = new Map<number, number>() // By queue, the `seq` that was looked at last.

  /** After the clock was set back, an id is known for the window from now on, and no longer. */
  function isOver(seq: number, id: Uint8Array, at: number, now: number, dedupeWindowMs: number): boolean {
    if (at > now) setCompleted.run(seq, id, now)
    return at <= now - dedupeWindowMs
  }

  function seqOf(queue: number, id: Uint8Array): number | undefined {
    return find.get(queue, id)?.seq as number | undefined
  }

  /** Whether the job with this id is complete and the dedupe window is over. */
  function isOverdue(seq: number, id: Uint8Array, now: number, dedupeWindowMs: number): boolean {
    const row = completedAt.get(seq)
    return row !== undefined && isOver(seq, id, Number(row.at), now, dedupeWindowMs)
  }

  /** Gives an id to a job. Returns false when it is known. */
  function addId(queue: number, id: Uint8Array, seq: number, now: number, dedupeWindowMs: number): boolean {
    if (insertId.run(queue, id, seq).changes === 1) return true
    const old = seqOf(queue, id) as number
    if (!isOverdue(old, id, now, dedupeWindowMs)) return false
    unsetCompleted.run(old)
    assign.run(seq, queue, id)
    return true
  }

  function isKnown(queue: number, id: Uint8Array, now: number, dedupeWindowMs: number): boolean {
    const seq = seqOf(queue, id)
    return seq !== undefined && !isOverdue(seq, id, now, dedupeWindowMs)
  }

  return {
    push(row, settings, { ids, notBefore, bodies, now }) {
      const { queue } = row
      const { dedupeWindowMs, maxJobs } = settings
      if (row.waiting + row.active + ids.length > maxJobs) {
        const fresh = ids.filter((id) => !isKnown(queue, id, now, dedupeWindowMs))
        requireRoom(row, settings, fresh.length)
      }
      for (let index = 0; index < ids.length; index += 1) {
        const id = ids[index] as Uint8Array
        const seq = queue * NUMBERS + row.next
        if (!addId(queue, id, seq, now, dedupeWindowMs)) continue
        const at = notBefore[index] ?? now
        insert.run(seq, queue, id, at <= now ? 0 : 1, row.next, at)
        insertBody.run(seq, bodies[index] as Uint8Array)
        row.next += 1
        row.waiting += 1
      }
    },
    seqOf,
    forget: (queue, id) => void remove.run(queue, id),
    bodyOf(seq) {
      const body = damaged.has(seq) ? undefined : notingDamage(damaged, seq, () => readBody.get(seq))?.body
      return body instanceof Uint8Array ? body : undefined
    },
    removeBody(seq) {
      if (!damaged.has(seq)) notingDamage(damaged, seq, () => removeBody.run(seq))
    },
    prune(queue, limit, dedupeWindowMs, now) {
      if (damaged.has('completed')) return
      notingDamage(damaged, 'completed', () => {
        const [from, end] = [prunedTo.get(queue) ?? queue * NUMBERS, (queue + 1) * NUMBERS]
        const last = lastCompleted.get(from, end, limit - 1)?.seq as number | undefined
        const rows = overOrAhead.all(from, last ?? end, now - dedupeWindowMs, now)
        for (const { seq, id, at } of rows as { seq: number; id: Uint8Array; at: number }[]) {
          if (!isOver(seq, id, at, now, dedupeWindowMs)) continue
          remove.run(queue, id)
          unsetCompleted.run(seq)
        }
        if (last === undefined) prunedTo.delete(queue)
        else prunedTo.set(queue, last)
      })
    },
  }
}

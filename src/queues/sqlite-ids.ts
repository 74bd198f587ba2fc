/** The ids of a queue in a file: which are known, and those of jobs that are done forgotten in time. */

import type { DatabaseSync } from 'node:sqlite'
import { NUMBERS } from './sqlite-schema.ts'

/** The ids. */
export interface Ids {
  /** Enters an id for a job; false when it is known. */
  add(id: Uint8Array, seq: number, now: number): boolean
  has(id: Uint8Array, now: number): boolean
  /** The job that it was given to. */
  seqOf(id: Uint8Array): number | undefined
  /** From now on it is known for a while only. */
  finish(id: Uint8Array, seq: number, now: number): void
  forget(id: Uint8Array): void
  /** Looks at so many of those that are done, and forgets the ones whose time is over. */
  prune(most: number, now: number): void
}

/** Makes them over an open file. */
export function createIds(database: DatabaseSync, queue: number, knownForMs: number): Ids {
  const insert = database.prepare('INSERT OR IGNORE INTO hookline_queue_ids (queue, id, seq) VALUES (?, ?, ?)')
  const find = database.prepare('SELECT seq FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const assign = database.prepare('UPDATE hookline_queue_ids SET seq = ? WHERE queue = ? AND id = ?')
  const remove = database.prepare('DELETE FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const doneAt = database.prepare('SELECT done_at AS at FROM hookline_queue_done WHERE seq = ?')
  const setDone = database.prepare('INSERT OR REPLACE INTO hookline_queue_done (seq, id, done_at) VALUES (?, ?, ?)')
  const unsetDone = database.prepare('DELETE FROM hookline_queue_done WHERE seq = ?')
  const sweep = database.prepare(
    'SELECT seq, id, done_at AS at FROM hookline_queue_done WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?',
  )
  const [first, end] = [queue * NUMBERS, (queue + 1) * NUMBERS]
  let swept = first

  /** When the clock was set back, no longer than it was to be from now on. */
  function isOver(seq: number, id: Uint8Array, at: number, now: number): boolean {
    if (at > now) setDone.run(seq, id, now)
    return at <= now - knownForMs
  }

  function seqOf(id: Uint8Array): number | undefined {
    return find.get(queue, id)?.seq as number | undefined
  }

  /** Whether the job that has it is done, and the time of the id over. */
  function isOverdue(seq: number, id: Uint8Array, now: number): boolean {
    const row = doneAt.get(seq)
    return row !== undefined && isOver(seq, id, Number(row.at), now)
  }

  return {
    add(id, seq, now) {
      if (insert.run(queue, id, seq).changes === 1) return true
      const old = seqOf(id) as number
      if (!isOverdue(old, id, now)) return false
      unsetDone.run(old)
      assign.run(seq, queue, id)
      return true
    },
    has(id, now) {
      const seq = seqOf(id)
      return seq !== undefined && !isOverdue(seq, id, now)
    },
    seqOf,
    finish(id, seq, now) {
      setDone.run(seq, id, now)
    },
    forget(id) {
      remove.run(queue, id)
    },
    prune(most, now) {
      const rows = sweep.all(swept, end, most)
      for (const row of rows) {
        const [seq, id] = [row.seq as number, row.id as Uint8Array]
        if (!isOver(seq, id, Number(row.at), now)) continue
        remove.run(queue, id)
        unsetDone.run(seq)
      }
      swept = rows.length < most ? first : (rows.at(-1)?.seq as number)
    },
  }
}

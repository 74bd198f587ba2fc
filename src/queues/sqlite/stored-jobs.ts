/** The jobs that wait or are claimed: lists them whatever happens to them meanwhile, and deletes those that wait. */

import { PHASE, type QueueRow } from './counts.ts'
import type { Pushes } from './pushes.ts'
import { bytesOfId, NUMBERS, type OpenTables, textOfId } from './tables.ts'

/** A job, and its number, which stays the same while it is stored. */
interface StoredRow {
  readonly seq: number
  readonly id: string
  readonly body: Uint8Array
}

/** What can be done with them. */
export interface StoredJobs {
  /** Those after this `seq`; a job whose id cannot be read is left out. */
  page(queue: number, after: number, limit: number): { readonly rows: readonly StoredRow[]; readonly last: number }
  remove(row: QueueRow, ids: readonly string[]): number
}

/** Creates it over an open file. */
export function createStoredJobs({ database }: OpenTables, pushes: Pushes): StoredJobs {
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

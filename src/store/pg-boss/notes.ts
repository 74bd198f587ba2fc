/** Keeps data of a job between its claims in Hookline's own table, because pg-boss cannot change the data of a claimed job. */

import type { Db } from 'pg-boss'
import type { Settings } from './pg-boss-options.ts'

export interface Note {
  /** The time at which a handler first saw the job; null if no handler has seen it. */
  readonly first: Date | null
  /** How many claims of the job ended before a handler saw it, and so do not count. */
  readonly uncounted: number
  readonly state: Uint8Array | null
}

export type Notes = ReturnType<typeof createNotes>

export function createNotes({ name, schema }: Settings) {
  const table = `${schema}.hookline_retry`
  return {
    async readNotes(ids: readonly string[], db: Db): Promise<Map<string, Note>> {
      if (ids.length === 0) return new Map()
      const { rows } = await db.executeSql(
        `SELECT id::text, first_at AS first, uncounted, state FROM ${table} WHERE queue = $1 AND id = ANY($2::uuid[])`,
        [name, ids],
      )
      return new Map(rows.map(({ id, ...note }) => [id, note]))
    },
    async write(notes: ReadonlyMap<string, Note>, db: Db): Promise<void> {
      if (notes.size === 0) return
      const rows = [...notes].map(([id, { first, uncounted, state }]) => {
        const bytes = state && `\\x${Buffer.from(state).toString('hex')}`
        return { queue: name, id, first_at: first, uncounted, state: bytes }
      })
      await db.executeSql(
        `INSERT INTO ${table} SELECT * FROM json_populate_recordset(null::${table}, $1)
        ON CONFLICT (queue, id) DO UPDATE SET first_at = excluded.first_at, uncounted = excluded.uncounted, state = excluded.state`,
        [JSON.stringify(rows)],
      )
    },
    async delete(ids: readonly string[], db: Db): Promise<void> {
      if (ids.length === 0) return
      await db.executeSql(`DELETE FROM ${table} WHERE queue = $1 AND id = ANY($2::uuid[])`, [name, ids])
    },
  }
}

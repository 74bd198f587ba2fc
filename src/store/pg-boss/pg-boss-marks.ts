/** The marks of a queue, in a table of Hookline. */

import type { MarkStore } from '../queue-store.ts'
import type { Connection } from './pg-boss-connection.ts'
import type { Settings } from './pg-boss-options.ts'

export function createMarks(connection: Connection, { name, schema }: Settings): MarkStore {
  const table = `${schema}.hookline_mark`
  return {
    set: (marks, endedBefore) =>
      connection.transact(async (_boss, db) => {
        const rows = marks.map(({ key, until }) => ({ key, until: until.getTime() }))
        // This lock lets only one process at a time set marks, so that versions appear in order.
        await db.executeSql(`SELECT pg_advisory_xact_lock(hashtext('${table}'), hashtext($1))`, [name])
        await db.executeSql(`DELETE FROM ${table} WHERE queue = $1 AND until < $2`, [name, endedBefore.getTime()])
        await db.executeSql(
          `INSERT INTO ${table} (queue, key, until) SELECT $1, key, until FROM json_to_recordset($2) AS mark (key text, until bigint)
          ON CONFLICT (queue, key) DO UPDATE SET until = excluded.until, version = DEFAULT`,
          [name, JSON.stringify(rows)],
        )
      }),
    async list(after, limit) {
      // A float8 arrives as a JavaScript number, and is exact for these values.
      const statement = `SELECT key, until::float8, version::float8 FROM ${table}
        WHERE queue = $1 AND ${table}.version > $2 ORDER BY ${table}.version LIMIT $3`
      const { rows } = await connection.call((boss) => boss.getDb().executeSql(statement, [name, after, limit]))
      return rows.map(({ key, until, version }) => ({ key, until: new Date(until), version }))
    },
  }
}

/** The marks of a queue: a table of Hookline's own. */

import type { MarkStore } from '../queue-store.ts'
import type { Connection } from './pg-boss-connection.ts'
import type { Settings } from './pg-boss-options.ts'

export function createMarks(connection: Connection, { name, schema }: Settings): MarkStore {
  const table = `${schema}.hookline_mark`

  async function run<Row>(statements: readonly (readonly [text: string, ...values: unknown[]])[]): Promise<Row[]> {
    return connection.transact(async (_boss, db) => {
      let rows: Row[] = []
      for (const [text, ...values] of statements) rows = (await db.executeSql(text, [name, ...values])).rows
      return rows
    })
  }

  return {
    async set(marks, endedBefore) {
      const rows = marks.map(({ key, until }) => ({ key, until: until.getTime() }))
      await run([
        // One process sets at a time: versions then appear in their order.
        [`SELECT pg_advisory_xact_lock(hashtext('${table}'), hashtext($1))`],
        [`DELETE FROM ${table} WHERE queue = $1 AND until < $2`, endedBefore.getTime()],
        [
          `INSERT INTO ${table} (queue, key, until) SELECT $1, key, until FROM json_to_recordset($2) AS mark (key text, until bigint)
          ON CONFLICT (queue, key) DO UPDATE SET until = excluded.until, version = DEFAULT`,
          JSON.stringify(rows),
        ],
      ])
    },
    async list(after, limit) {
      const statement = `SELECT key, until, version FROM ${table} WHERE queue = $1 AND version > $2 ORDER BY version LIMIT $3`
      const rows = await run<Row>([[statement, after, limit]])
      return rows.map(({ key, until, version }) => ({ key, until: new Date(Number(until)), version: Number(version) }))
    },
  }
}

/** PostgreSQL sends a bigint as text. */
interface Row {
  readonly key: string
  readonly until: string
  readonly version: string
}

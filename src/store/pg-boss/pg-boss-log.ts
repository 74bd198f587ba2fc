/** The log of a queue. It is a table of Hookline, not of pg-boss. Entries are added in the transaction that completes the jobs. */

import type { Db } from 'pg-boss'
import type { LogStore } from '../queue-store.ts'
import { UNLIMITED } from '../walk.ts'
import type { Connection } from './pg-boss-connection.ts'
import { encode, type PgBossClaim } from './pg-boss-job.ts'
import { LISTING_FACTOR, type Settings } from './pg-boss-options.ts'
import { fitting } from './pg-boss-tables.ts'

/**
 * Appends the completed jobs that have a note. Entries get their numbers under a lock that writers share until their transactions end. A
 * reader that holds the lock exclusively can therefore be sure that no number below the highest one will still appear.
 */
export async function append(
  db: Db,
  { name, schema, clock }: Settings,
  jobs: readonly { readonly claim: PgBossClaim; readonly log: Uint8Array | undefined }[],
): Promise<void> {
  const rows = jobs.flatMap(({ claim: { id, data }, log }) => (log ? [{ id, body: data.body, note: encode(log) }] : []))
  if (rows.length === 0) return
  await db.executeSql(
    `WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(${lockOf(schema)}))
    INSERT INTO ${schema}.hookline_log (queue, id, body, note, bytes, handled_at)
    SELECT $1, id, bytes, decode(note, 'base64'), length(bytes), $3
    FROM locked, json_to_recordset($2) AS entry (id uuid, body text, note text), decode(body, 'base64') AS bytes`,
    [name, JSON.stringify(rows), new Date(clock.now())],
  )
}

/** Returns the SQL arguments that identify the lock of the log of a queue. The name of the queue is the parameter `$1`. */
function lockOf(schema: string): string {
  return `hashtext('${schema}.hookline_log'), hashtext($1)`
}

/** The largest PostgreSQL bigint. */
const MAX_SEQ = '9223372036854775807'

export function createLog(connection: Connection, { name, schema, timeoutMs }: Settings): LogStore {
  const table = `${schema}.hookline_log`
  /**
   * The number of the newest entry that no longer fits into `maxBytes`. The number is looked up once, and kept until calls to `trim` have
   * dropped all entries up to it.
   */
  let lastSeqOverSize: string | undefined

  async function runStatement<Row>(statement: string, values: readonly unknown[]): Promise<Row[]> {
    return connection.transact(
      async (_boss, db) => (await db.executeSql(statement, [name, ...values])).rows,
      timeoutMs * LISTING_FACTOR,
    )
  }

  /** Returns the number of the newest entry that no longer fits into `maxBytes`; 0 if all entries fit. Reads only the index. */
  async function findExcess(maxBytes: number): Promise<string> {
    const newest = `SELECT seq, sum(bytes) OVER (ORDER BY seq DESC) AS total FROM ${table} WHERE queue = $1`
    const statement = `SELECT seq::text FROM (${newest}) AS entry WHERE total > $2 ORDER BY entry.seq DESC LIMIT 1`
    const [entry] = await runStatement<{ readonly seq: string }>(statement, [maxBytes])
    return entry?.seq ?? '0'
  }

  /** Waits until no number below the highest one can still appear, and returns the highest number. */
  function findEnd(): Promise<string> {
    return connection.transact(async (_boss, db) => {
      await db.executeSql(`SELECT pg_advisory_xact_lock(${lockOf(schema)})`, [name])
      const statement = `SELECT coalesce(max(seq), 0)::text AS seq FROM ${table} WHERE queue = $1`
      return (await db.executeSql(statement, [name])).rows[0].seq
    })
  }

  return {
    async list({ since, until, after, limit, maxBytes }) {
      const end = await findEnd()
      const entries = `SELECT seq, bytes, row_number() OVER (ORDER BY seq) AS place FROM ${table}
        WHERE queue = $1 AND seq > $2 AND seq <= $7
          AND handled_at >= coalesce($3::timestamptz, '-infinity') AND handled_at < coalesce($4::timestamptz, 'infinity') ORDER BY seq LIMIT $5`
      return runStatement<Row>(
        `SELECT id::text, body, note, handled_at AS "handledAt", seq::text AS cursor FROM ${table}
        WHERE queue = $1 AND seq IN (${fitting(entries, '$6')}) ORDER BY ${table}.seq`,
        [after ?? '0', timeOf(since), timeOf(until), limit, maxBytes, end],
      )
    },
    async trim({ before, maxBytes, limit }) {
      if (maxBytes !== UNLIMITED) lastSeqOverSize ??= await findExcess(maxBytes)
      // Drops only the entries before the first one that stays, because looking for old entries after it would read the whole index.
      const firstKept = `SELECT seq FROM ${table} WHERE queue = $1 AND handled_at >= $2 AND seq > $3 ORDER BY seq LIMIT 1`
      const oldest = `SELECT seq FROM ${table} WHERE queue = $1 AND seq < coalesce((${firstKept}), ${MAX_SEQ}) ORDER BY seq LIMIT $4`
      const statement = `DELETE FROM ${table} WHERE queue = $1 AND seq IN (${oldest}) RETURNING seq`
      const { length } = await runStatement(statement, [timeOf(before), lastSeqOverSize ?? '0', limit])
      // If fewer entries than `limit` were dropped, none up to this number is left. The next trim looks up the number again.
      if (length < limit) lastSeqOverSize = undefined
      return length
    },
    async rewrite(entries) {
      const rows = entries.map(({ cursor, body, note }) => ({ seq: cursor, body: encode(body), note: encode(note) }))
      await runStatement(
        `UPDATE ${table} AS entry SET body = decode(changed.body, 'base64'), note = decode(changed.note, 'base64')
        FROM json_to_recordset($2) AS changed (seq bigint, body text, note text) WHERE queue = $1 AND entry.seq = changed.seq`,
        [JSON.stringify(rows)],
      )
    },
    remove: async (cursors) =>
      (await runStatement(`DELETE FROM ${table} WHERE queue = $1 AND seq = ANY($2::bigint[]) RETURNING seq`, [cursors]))
        .length,
  }
}

type Row = Awaited<ReturnType<LogStore['list']>>[number]

/** Returns a time for PostgreSQL: `-infinity` before the year 1970, and `infinity` from the year 9999 on. */
function timeOf(date: Date | undefined): Date | 'infinity' | '-infinity' | null {
  if (date === undefined) return null
  if (date.getTime() >= Date.UTC(9999, 0)) return 'infinity'
  return date.getTime() < 0 ? '-infinity' : date
}

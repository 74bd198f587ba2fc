/**
 * The history: completed jobs, which pg-boss keeps because they are never to be deleted (`deletion_seconds` 0), until they are too old.
 * pg-boss has no call that lists them in order or makes them wait again: these statements are our own.
 */

import type { Db, PgBoss } from 'pg-boss'
import { idOfKey } from '../../message/id.ts'
import type { HandledJob } from '../api.ts'
import { requireCursor } from '../arguments.ts'
import type { CheckedHistoryPage, HistoryStore } from '../store.ts'
import type { Connection } from './connection.ts'
import type { Settings } from './options.ts'
import { storeNote } from './prepare.ts'
import {
  createStamps,
  encode,
  type PgBossClaim,
  readBody,
  readKept,
  secondsOf,
  selectFitting,
  timestampOf,
} from './rows.ts'

export interface Kept {
  readonly claim: PgBossClaim
  readonly keep: Uint8Array
}

/** To the microsecond, as PostgreSQL has it. */
const STAMP = 'round(extract(epoch FROM completed_on) * 1000000)::bigint'
const IS_KEPT = "name = $1 AND state = 'completed' AND deletion_seconds = 0"
const CURSOR = /^\d+\.[0-9a-f-]{36}$/
/** PostgreSQL writes later years in another form. */
const MAX_TIME = Date.UTC(9999, 0)
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000'

export function createHistory(
  connection: Connection,
  { name, schema, timeoutMs, dedupeWindowMs, clock, onError }: Settings,
) {
  const stamp = createStamps(clock)
  const job = `${schema}.job`
  const slow = { limitMs: timeoutMs * 10 }
  let indexing: Promise<void> | undefined

  /** Without it each page reads the whole history. It stops no writers: only a table that is no partitioned one can have it so. */
  async function createIndex(): Promise<void> {
    const find = `SELECT table_name AS "table" FROM ${schema}.queue WHERE name = $1`
    const [{ table } = { table: 'job' }] = await run<{ readonly table: string }>(find, [name])
    const statement = `CREATE INDEX CONCURRENTLY IF NOT EXISTS ${table}_hookline_history
      ON ${schema}.${table} (name, completed_on, id) WHERE state = 'completed' AND deletion_seconds = 0`
    await run(statement, [], INDEXING_MS)
  }

  async function run<Found = Row>(statement: string, values: unknown[], limitMs = slow.limitMs): Promise<Found[]> {
    const { rows } = await connection.call((boss) => boss.getDb().executeSql(statement, values), { limitMs })
    return rows
  }

  const columns = `id::text, data, output, completed_on AS "handledAt", ${STAMP}::text AS stamp`

  async function list({ since, until, after, limit, maxBytes }: CheckedHistoryPage): Promise<readonly HandledJob[]> {
    const [at = '0', lastId = BEFORE_ALL] = after?.split('.') ?? []
    if (after !== undefined) requireCursor('after', after, CURSOR)
    const from = Math.min(Math.max(since?.getTime() ?? 0, 0), MAX_TIME) * 1000
    const isAfter = Number(at) >= from
    const ids = `SELECT id FROM ${job} WHERE ${IS_KEPT} AND (completed_on, id) > ($2, $3)
      AND completed_on < coalesce($4, 'infinity'::timestamptz) ORDER BY completed_on, id LIMIT $5`
    const first = [timestampOf(isAfter ? Number(at) : from), isAfter ? lastId : BEFORE_ALL]
    const end = until !== undefined && until.getTime() < MAX_TIME ? until : null
    const statement = selectFitting(schema, columns, ids, '$6')
    return (await run(statement, [name, ...first, end, limit, maxBytes])).map(toHandled)
  }

  /** In the place of `complete`: pg-boss must not delete them. Returns how many claims were current. */
  async function keepAll(batch: readonly Kept[], boss: PgBoss, db: Db): Promise<number> {
    const attempts = batch.map(({ claim: { id, retryCount } }) => ({ job_id: id, attempt: retryCount }))
    const statement = `UPDATE ${job} SET deletion_seconds = 0 FROM json_to_recordset($2) AS kept (job_id uuid, attempt int)
      WHERE name = $1 AND id = job_id AND retry_count = attempt AND state = 'active'`
    await db.executeSql(statement, [name, JSON.stringify(attempts)])
    let count = 0
    for (const [kept, alike] of Map.groupBy(batch, ({ keep }) => encode(keep))) {
      const claims = alike.map(({ claim }) => claim)
      count += affectedBy(await boss.complete(name, claims as never, { kept }, { db }))
    }
    return count
  }

  return {
    keep: keepAll,
    /** Returns whether the claim was current. */
    async complete(claim: PgBossClaim, keep: Uint8Array | undefined, boss: PgBoss, db: Db): Promise<boolean> {
      if (keep !== undefined) return (await keepAll([{ claim, keep }], boss, db)) === 1
      return affectedBy(await boss.complete(name, [claim] as never, undefined, { db })) === 1
    },
    store: {
      countsBytes: false,
      list,
      async find(ids) {
        const statement = `SELECT ${columns} FROM ${job} WHERE ${IS_KEPT} AND id = ANY($2::uuid[])`
        return (await run(statement, [name, ids])).map(toHandled)
      },
      /** The row goes on, as in a redrive. */
      async replay(jobs) {
        const statement = `UPDATE ${job} SET state = 'retry', completed_on = NULL, output = NULL, priority = 0,
            created_on = ${schema}.job_now() + place * interval '1 microsecond', start_after = ${schema}.job_now(), deletion_seconds = $3,
            data = jsonb_build_object('at', pushed_at, 'body', data -> 'body', 'state', retry_state, 'before', retry_count + 1)
          FROM json_to_recordset($2) AS again (job_id uuid, place int, handled bigint, pushed_at bigint, retry_state text)
          WHERE ${IS_KEPT} AND id = job_id AND ${STAMP} = handled RETURNING id::text, start_after AS at`
        const again = jobs.map(({ id, cursor, retryState }, place) => ({
          job_id: id,
          place,
          handled: cursor.split('.')[0],
          pushed_at: stamp(),
          retry_state: encode(retryState),
        }))
        const rows = await run<Replayed>(statement, [name, JSON.stringify(again), secondsOf(dedupeWindowMs)])
        const [now] = rows.length > 0 ? rows : await run<Replayed>(`SELECT ${schema}.job_now() AS at`, [])
        return { ids: rows.map(({ id }) => id), at: (now as Replayed).at }
      },
      /** The row stays as long as the id is to be known. */
      async drop({ before, limit }) {
        indexing ??= createIndex().catch(onError)
        await indexing
        // Both conditions again: a job that is replayed meanwhile is waited for, and then it is another row.
        const statement = `UPDATE ${job} SET data = NULL, output = NULL, deletion_seconds = $4
          WHERE ${IS_KEPT} AND completed_on < $2
            AND id IN (SELECT id FROM ${job} WHERE ${IS_KEPT} AND completed_on < $2 ORDER BY completed_on LIMIT $3)
          RETURNING id`
        return (await run(statement, [name, before, limit, secondsOf(dedupeWindowMs)])).length
      },
      note: (key, text) => connection.transaction((boss, db) => storeNote(boss, name, idOfKey(key), text, db)),
    } satisfies HistoryStore,
  }
}

/** Its typings leave out what it documents. */
function affectedBy(response: object): number {
  return (response as { readonly affected: number }).affected
}

/** It waits for the transactions that are open, and reads the whole table. */
const INDEXING_MS = 10 * 60_000

export type CompleteJob = ReturnType<typeof createHistory>['complete']

interface Replayed {
  readonly id: string
  readonly at: Date
}

type Row = Record<'id' | 'stamp', string> & {
  readonly data: unknown
  readonly output: unknown
  readonly handledAt: Date
}

function toHandled({ id, data, output, handledAt, stamp }: Row): HandledJob {
  return { id, body: readBody(data), kept: readKept(output), handledAt, cursor: `${stamp}.${id}` }
}

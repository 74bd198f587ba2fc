/**
 * The statements of our own on a table of pg-boss. `findJobs` returns all jobs of a queue at once and in no order, so neither
 * dead letters nor what is stored of a user could be read in pages with it; and to count, pg-boss writes. The statements only read.
 * {@link requireReadable} fails when pg-boss changes what they read.
 */

import { randomUUID } from 'node:crypto'
import type { Db } from 'pg-boss'
import type { QueueCounts } from '../health.ts'

/** A row as the statement returns it. */
export interface Row {
  readonly id: string
  readonly data: unknown
  /** Of a dead letter: when it became one. */
  readonly startAfter: Date
}

/** Which rows to read, the oldest first. */
export interface RowsPage {
  readonly schema: string
  readonly queue: string
  /** `failed` is what pg-boss gave up, `waiting` what it would let workers fetch, `any` whatever is stored. */
  readonly state: 'waiting' | 'failed' | 'any'
  /** Reads those after this id; from the oldest on when it is not among them. */
  readonly after?: string | undefined
  readonly limit: number
}

const CONDITIONS = { waiting: `AND row.state < 'active'`, failed: `AND row.state = 'failed'`, any: '' } as const

/** Reads a page of the rows of one queue. */
export async function readRows(db: Db, { schema, queue, state, after, limit }: RowsPage): Promise<readonly Row[]> {
  const isRead = (row: string): string => `${row}.name = $1 ${CONDITIONS[state].replace('row', row)}`
  // What comes in any state goes by what never changes, so that nothing is missed while its state does.
  const order = (row: string): string => `${row}.created_on, ${state === 'any' ? '' : `${row}.start_after, `}${row}.id`
  const statement = `SELECT job.id::text, job.data, job.start_after AS "startAfter" FROM ${schema}.job AS job
    LEFT JOIN ${schema}.job AS last ON last.id = $2 AND ${isRead('last')}
    WHERE ${isRead('job')} AND (last.id IS NULL OR (${order('job')}) > (${order('last')}))
    ORDER BY ${order('job')} LIMIT $3`
  const { rows } = await db.executeSql(statement, [queue, after ?? null, limit])
  return rows
}

/** Counts the jobs of one queue, now. `getQueueStats` would store what it counts, and return what it has stored for a minute. */
export async function countRows(db: Db, schema: string, queue: string): Promise<Omit<QueueCounts, 'deadLetters'>> {
  const statement = `SELECT count(*) FILTER (WHERE state < 'active')::int AS waiting,
    count(*) FILTER (WHERE state = 'retry')::int AS retrying,
    count(*) FILTER (WHERE state = 'active')::int AS active,
    min(start_after) FILTER (WHERE state < 'active' AND start_after <= now()) AS "oldestDueAt", now() AS "asOf"
    FROM ${schema}.job WHERE name = $1 AND state <= 'active'`
  const [counts] = (await db.executeSql(statement, [queue])).rows
  return { ...counts, oldestDueAt: counts.oldestDueAt ?? undefined }
}

/**
 * Checks that the statement sees what pg-boss inserts. Leaves a job behind: call it in a transaction, and roll that back.
 *
 * @param insert Lets pg-boss insert a job with this id into the queue.
 * @throws Error when it does not: the schema is another one, or the table has changed.
 */
export async function requireReadable(
  db: Db,
  page: Pick<RowsPage, 'schema' | 'queue'>,
  insert: (id: string) => Promise<unknown>,
): Promise<void> {
  const id = randomUUID()
  await insert(id)
  const read = (after?: string) => readRows(db, { ...page, state: 'waiting', after, limit: 1 })
  const [[first], [next]] = [await read(), await read(id)]
  // Nothing is both the first of all and the first after the job, unless the job is not among them.
  if (first === undefined || first.id === next?.id) throw new Error(`no job of this pg-boss in schema ${page.schema}`)
}

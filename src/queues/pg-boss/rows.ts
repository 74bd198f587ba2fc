/** The rows of pg-boss: what Hookline writes into their `data`, and the statements of our own that read them. */

import { randomUUID } from 'node:crypto'
import type { Db, Job as FetchedJob } from 'pg-boss'
import type { Clock } from '../../time/clock.ts'
import type { ClaimedJob, DeadLetter } from '../api.ts'
import type { QueueCounts } from '../health.ts'
import { PAGE, type PageBounds } from '../walk.ts'

/** The `data` of a job and of a dead letter. Bytes are base64, because U+0000 in JSON fails an insert. */
export interface Data {
  /** When the job was pushed, in microseconds since the epoch: orders jobs that are claimed together. */
  readonly at: number
  readonly body: string
  readonly firstAt?: number
  readonly state?: string
  readonly before?: number
  readonly reason?: string
}

/** A claimed job. `id` and `retryCount` are the attempt that pg-boss checks: its calls change nothing once it is over. */
export interface PgBossClaim extends ClaimedJob {
  readonly retryCount: number
  data: Data
}

export function readClaim({ id, data, retryCount }: FetchedJob<unknown>, clock: Clock): PgBossClaim | undefined {
  if (!isData(data)) return undefined
  const body = decode(data.body)
  if (body === undefined) return undefined
  const { before = 0, firstAt = clock.now(), state } = data
  const claimCount = retryCount + 1 - before
  const first = claimCount === 1 && { dueAt: new Date(data.at / 1_000) }
  return { id, body, claimCount, firstAt: new Date(firstAt), ...first, retryState: decode(state), retryCount, data }
}

function isData(value: unknown): value is Data {
  if (typeof value !== 'object' || value === null) return false
  const { at, firstAt = 0, before = 0 } = value as Readonly<Record<string, unknown>>
  return typeof at === 'number' && typeof firstAt === 'number' && typeof before === 'number'
}

export function nextData({ data: { at, body, before } }: PgBossClaim, next: Partial<Data>): Data {
  return { at, body, ...(before !== undefined && { before }), ...next }
}

export function stateOf(retryState: Uint8Array | undefined): Pick<Data, 'state'> {
  return retryState === undefined ? {} : { state: encode(retryState) }
}

export const FOREIGN_REASON = 'the job was not written by Hookline'

export function readBody(value: unknown): Uint8Array {
  return decode((value as Partial<Data> | null)?.body) ?? foreignBody(value)
}

export function readLetter(id: string, value: unknown, failedAt: Date): DeadLetter {
  const { reason, state } = (value ?? {}) as Partial<Record<keyof Data, unknown>>
  const text = decode(reason)?.toString() ?? FOREIGN_REASON
  return { id, body: readBody(value), reason: text, retryState: decode(state), failedAt }
}

/** Of the output of a completed job. */
/** Whether the `data` is a note of Hookline, and no job. */
export function isNote(data: unknown): boolean {
  return typeof data === 'object' && data !== null && ('use' in data || 'note' in data) && !('at' in data)
}

export function foreignBody(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value ?? null))
}

export function encode(bytes: Uint8Array | string): string {
  if (typeof bytes === 'string') return Buffer.from(bytes).toString('base64')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

function decode(text: unknown): Buffer | undefined {
  if (typeof text !== 'string' || text.length % 4 !== 0 || !/^[\w+/]*={0,2}$/.test(text)) return undefined
  return Buffer.from(text, 'base64')
}

export function createStamps(clock: Clock): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(clock.now()) * 1000)
    return last
  }
}

export function timestampOf(stamp: number): string {
  const rest = String(stamp % 1000).padStart(3, '0')
  return new Date(Math.floor(stamp / 1000)).toISOString().replace('Z', `${rest}Z`)
}

/** How long until a time, in seconds. PostgreSQL adds it to its own time, so that the clocks need not agree. */
export function secondsUntil(at: Date, clock: Clock): number {
  return Math.ceil(Math.max(0, Math.min(at.getTime() - clock.now(), MAX_MS))) / 1000
}

/** A hundred years: the dates of PostgreSQL end. */
const MAX_MS = 100 * 365 * 24 * 60 * 60_000

export function secondsOf(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), FOREVER_SECONDS)
}

export const FOREVER_SECONDS: number = 2 ** 31 - 1

export interface Row {
  readonly id: string
  readonly data: unknown
  readonly startAfter: Date
}

export interface RowsPage extends PageBounds {
  readonly schema: string
  readonly queue: string
  readonly state: 'waiting' | 'any'
  readonly after?: string | undefined
  readonly newestFirst?: boolean
}

/**
 * Reads a page of the rows of one queue, with a statement of our own that only reads: `findJobs` returns all jobs at once, in no order.
 * {@link requireReadable} fails when pg-boss changes what it reads.
 */
export async function readRows(
  db: Db,
  { schema, queue, state, after, limit, maxBytes, newestFirst }: RowsPage,
): Promise<readonly Row[]> {
  const isWaiting = (row: string): string => `${row}.name = $1 AND ${row}.state < 'active'`
  const order = (row: string, way = ''): string => `${row}.created_on${way}, ${row}.start_after${way}, ${row}.id${way}`
  const [isBehind, way] = newestFirst === true ? ['<', ' DESC'] : ['>', '']
  const ids =
    state === 'any'
      ? // By the primary key, which no change of a state moves.
        `SELECT job.id FROM ${schema}.job AS job
        WHERE job.name = $1 AND ($2::uuid IS NULL OR job.id > $2) ORDER BY job.id LIMIT $3`
      : `SELECT job.id FROM ${schema}.job AS job
        LEFT JOIN ${schema}.job AS last ON last.id = $2 AND ${isWaiting('last')}
        WHERE ${isWaiting('job')} AND (last.id IS NULL OR (${order('job')}) ${isBehind} (${order('last')}))
        ORDER BY ${order('job', way)} LIMIT $3`
  const statement = selectFitting(schema, 'job.id::text, job.data, job.start_after AS "startAfter"', ids, '$4')
  const { rows } = await db.executeSql(statement, [queue, after ?? null, limit, maxBytes])
  return rows
}

/**
 * Selects columns of the first rows of a list of ids whose data fit into a page, at least one. Adds up the sizes row by row: a sum over all
 * of the list would read all of their bodies.
 *
 * @param ids A statement that selects ids of the queue `$1`, in order.
 * @param maxBytes The parameter that bounds the bodies, which are stored in base64.
 */
function selectFitting(schema: string, columns: string, ids: string, maxBytes: string): string {
  const size = "coalesce(octet_length(data ->> 'body'), octet_length(data::text), 0) * 0.75"
  return `WITH RECURSIVE listed AS MATERIALIZED (SELECT array_agg(id) AS ids FROM (${ids}) AS page),
    fitting (place, bytes) AS (
      SELECT 0, 0::numeric
      UNION ALL SELECT place + 1, bytes + size
      FROM fitting, listed, LATERAL (SELECT ${size} AS size FROM ${schema}.job WHERE name = $1 AND id = ids[place + 1]) AS next
      WHERE place < cardinality(ids) AND (place = 0 OR bytes + size <= ${maxBytes}))
    SELECT ${columns} FROM fitting, listed, ${schema}.job AS job
    WHERE job.name = $1 AND job.id = ids[place] ORDER BY place`
}

/** Stores the `data` of a job that goes on: pg-boss changes only those that wait. */
export async function saveData(db: Db, schema: string, queue: string, claim: PgBossClaim): Promise<void> {
  const { id, retryCount, data } = claim
  const isCurrent = "name = $1 AND id = $2 AND state = 'active' AND retry_count = $3"
  await db.executeSql(`UPDATE ${schema}.job SET data = $4 WHERE ${isCurrent}`, [
    queue,
    id,
    retryCount,
    JSON.stringify(data),
  ])
}

const isDue = (schema: string) =>
  `name = $1 AND state < 'active' AND NOT blocked AND start_after <= ${schema}.job_now()`
/** As pg-boss fetches them. */
const IN_ORDER = 'ORDER BY priority DESC, created_on'

/** When the first of the due jobs came due. It locks no row: a claim would go past that one. */
export async function readFirstDue(db: Db, schema: string, queue: string): Promise<Date | undefined> {
  const statement = `SELECT start_after AS "dueAt" FROM ${schema}.job WHERE ${isDue(schema)} ${IN_ORDER} LIMIT 1`
  return (await db.executeSql(statement, [queue])).rows[0]?.dueAt
}

/** The groups that are busy; and those of the next due jobs of others, in the order of the jobs: null for a job without one. */
export async function readDueGroups(db: Db, schema: string, queue: string, limit: number) {
  const statement = `
    WITH busy AS MATERIALIZED (
      SELECT DISTINCT group_id FROM ${schema}.job WHERE name = $1 AND state = 'active' AND group_id IS NOT NULL)
    SELECT group_id AS "group", (SELECT coalesce(array_agg(group_id), '{}') FROM busy) AS busy FROM ${schema}.job
    WHERE ${isDue(schema)} AND (group_id IS NULL OR group_id NOT IN (SELECT group_id FROM busy))
    ${IN_ORDER} LIMIT $2`
  const { rows } = await db.executeSql(statement, [queue, limit])
  const [first] = rows as { readonly busy: string[] }[]
  return { groups: rows.map(({ group }) => group as string | null), busy: first?.busy ?? [] }
}

/** Puts jobs after all that were created before, in this order: pg-boss fetches by the time of creation. @param passed Since the transaction began. */
export async function putLast(db: Db, schema: string, queue: string, ids: readonly string[], passed = "interval '0'") {
  const statement = `WITH moment AS MATERIALIZED (SELECT ${passed} AS passed)
    UPDATE ${schema}.job SET created_on = ${schema}.job_now() + passed + n * interval '1 microsecond'
    FROM unnest($2::uuid[]) WITH ORDINALITY AS last (job_id, n), moment
    WHERE name = $1 AND id = job_id AND state < 'active'`
  await db.executeSql(statement, [queue, ids])
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
  const read = (after?: string) => readRows(db, { ...page, ...PAGE, state: 'waiting', after, limit: 1 })
  const [[first], [next]] = [await read(), await read(id)]
  // Nothing is both the first of all and the first after the job, unless the job is not among them.
  if (first === undefined || first.id === next?.id) throw new Error(`no job of this pg-boss in schema ${page.schema}`)
}

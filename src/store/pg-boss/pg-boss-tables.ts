/** The tables of Hookline, which are in the pg-boss schema, and the two pg-boss queues that Hookline uses. */

import { randomUUID } from 'node:crypto'
import type { Db, PgBoss } from 'pg-boss'
import type { QueueUse } from '../queue-types.ts'
import { doesNotExist, requireNote } from '../use.ts'
import { Connection } from './pg-boss-connection.ts'
import { type PgBossQueueOptions, readOptions, type Settings } from './pg-boss-options.ts'

const VERSION = 2
const MAX_CLAIM_SECONDS = 24 * 60 * 60
const FOREVER_SECONDS: number = 2 ** 31 - 1

/**
 * Returns the names of the two pg-boss queues, which the code calls lanes. One is for jobs without a group. The other is for jobs with a
 * group; its policy keeps the jobs of each group in order.
 */
export function lanesOf(name: string): readonly [alone: string, grouped: string] {
  return [name, `${name}-groups`]
}

export async function prepareQueues(boss: PgBoss, settings: Settings, use?: QueueUse): Promise<void> {
  const { name, schema, leaseMs, dedupeWindowMs } = settings
  const [alone, grouped] = lanesOf(name)
  await boss.createQueue(alone)
  await boss.createQueue(grouped, { policy: 'key_strict_fifo' })
  for (const lane of [alone, grouped]) {
    await boss.updateQueue(lane, {
      heartbeatSeconds: secondsOf(leaseMs), // pg-boss makes a claimed job wait again if it was not touched for this long.
      expireInSeconds: MAX_CLAIM_SECONDS,
      deleteAfterSeconds: secondsOf(dedupeWindowMs),
      // pg-boss itself must never give up on a job, or delete a job that waits.
      retryLimit: 1_000_000_000,
      retryDelay: 0,
      retentionSeconds: FOREVER_SECONDS,
    })
    await makeBossRemember(boss, lane)
  }
  const db = boss.getDb()
  await createTables(db, schema)
  const { rows } = await db.executeSql(
    `INSERT INTO ${schema}.hookline_queue AS queue (name, version, use) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET use = coalesce(queue.use, excluded.use) RETURNING version, use`,
    [name, VERSION, use ?? null],
  )
  requireNote(name, VERSION, rows[0], use)
}

/** Makes pg-boss cache the queue, because in a transaction, pg-boss would need a second connection to look up the queue. */
async function makeBossRemember(boss: PgBoss, lane: string): Promise<void> {
  await boss.findJobs(lane, { id: randomUUID() })
}

async function createTables(db: Db, schema: string): Promise<void> {
  if (await hasTables(db, schema)) return
  // PostgreSQL runs several statements in one string as one transaction.
  await db.executeSql(`
    SELECT pg_advisory_xact_lock(hashtext('${schema}.hookline'));
    CREATE TABLE IF NOT EXISTS ${schema}.hookline_queue (name text PRIMARY KEY, version int NOT NULL, use text);
    CREATE TABLE IF NOT EXISTS ${schema}.hookline_retry (
      queue text, id uuid, first_at timestamptz, uncounted int NOT NULL, state bytea, PRIMARY KEY (queue, id));
    CREATE TABLE IF NOT EXISTS ${schema}.hookline_dead (
      queue text, id uuid, seq bigint GENERATED ALWAYS AS IDENTITY, in_group text, body bytea NOT NULL, reason bytea NOT NULL,
      state bytea, failed_at timestamptz NOT NULL, PRIMARY KEY (queue, id), UNIQUE (queue, seq));
    CREATE TABLE IF NOT EXISTS ${schema}.hookline_log (
      queue text, seq bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL, body bytea NOT NULL, note bytea NOT NULL,
      bytes int NOT NULL, handled_at timestamptz NOT NULL,
      PRIMARY KEY (queue, seq) INCLUDE (bytes, handled_at));
    CREATE TABLE IF NOT EXISTS ${schema}.hookline_mark (
      queue text, key text, until bigint NOT NULL, version bigint GENERATED ALWAYS AS IDENTITY,
      PRIMARY KEY (queue, key), UNIQUE (queue, version))`)
}

/** Returns whether the tables exist. Looks for only one of them, because they are created together. */
async function hasTables(db: Db, schema: string): Promise<boolean> {
  const { rows } = await db.executeSql('SELECT to_regclass($1) IS NOT NULL AS found', [`${schema}.hookline_mark`])
  return rows[0].found
}

/**
 * Checks that the queues of an observer exist, because an observer creates nothing.
 *
 * @throws HooklineError if no queue has the name, or if its format version is not that of this release.
 */
export async function requireQueues(boss: PgBoss, { name, schema }: Settings): Promise<void> {
  const names = await findNames(boss, schema)
  if (!names.includes(name)) throw doesNotExist(name, names)
  const note = `SELECT version, use FROM ${schema}.hookline_queue WHERE name = $1`
  requireNote(name, VERSION, (await boss.getDb().executeSql(note, [name])).rows[0])
  for (const lane of lanesOf(name)) await makeBossRemember(boss, lane)
}

async function findNames(boss: PgBoss, schema: string): Promise<string[]> {
  const db = boss.getDb()
  if (!(await hasTables(db, schema))) return []
  const { rows } = await db.executeSql(`SELECT name FROM ${schema}.hookline_queue ORDER BY name COLLATE "C"`)
  return rows.map((row) => row.name)
}

/**
 * Lists the names of the queues that Hookline keeps in a schema. Creates and changes nothing.
 *
 * @throws TypeError (as a rejection) that names the invalid option; HooklineError (as a rejection) `queue_unavailable`.
 */
export async function listQueues(options: Omit<PgBossQueueOptions, 'name' | 'observe'>): Promise<readonly string[]> {
  const settings = readOptions({ ...options, name: 'any', observe: true })
  const connection = new Connection(settings, async () => {})
  try {
    return await connection.call((boss) => findNames(boss, settings.schema))
  } finally {
    await connection.close()
  }
}

/**
 * Returns a statement that selects the `seq` of the rows of a page. The page ends before it exceeds `maxBytes`, but has at least one row.
 *
 * @param rows A statement that selects the `seq` and the `bytes` of each row, and its `place` in the order, from 1 up.
 */
export function fitting(rows: string, maxBytes: string): string {
  return `SELECT seq FROM (SELECT seq, place, sum(bytes) OVER (ORDER BY place) AS total FROM (${rows}) AS page) AS summed
    WHERE place = 1 OR total <= ${maxBytes}`
}

export function secondsOf(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), FOREVER_SECONDS)
}

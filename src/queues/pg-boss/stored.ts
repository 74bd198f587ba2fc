/** Lists, counts and changes the dead letters, which are in a table of Hookline's own, and the jobs that wait. */

import type { Db, PgBoss } from 'pg-boss'
import type { QueueStore } from '../store.ts'
import { PAGE, takePage } from '../walk.ts'
import type { Connection } from './connection.ts'
import { encode, inGroup, isOurs, PARTS, type PgBossClaim, type Pushed } from './job.ts'
import type { Settings } from './options.ts'
import { fitting, lanesOf } from './tables.ts'

/** A job that becomes a dead letter. */
export interface NewLetter {
  readonly id: string
  readonly lane: string
  readonly group: string | undefined
  /** In base64. */
  readonly body: string
  readonly reason: string
  readonly state: Uint8Array | undefined
}

interface Rest {
  /** The jobs that this process has claimed. */
  readonly held: ReadonlySet<PgBossClaim>
  deleteNotes(ids: readonly string[], db: Db): Promise<void>
  insert(jobs: readonly Pushed[], boss: PgBoss, db: Db): Promise<unknown>
}

/** Each job takes some round trips, and a transaction has to end in time. */
const BATCH = 50

export async function addLetters(
  letters: readonly NewLetter[],
  { name, schema, clock }: Settings,
  db: Db,
): Promise<void> {
  const rows = letters.map(({ lane, reason, state, ...letter }) => ({
    ...letter,
    reason: encode(reason),
    state: state && encode(state),
  }))
  await db.executeSql(
    `INSERT INTO ${schema}.hookline_dead (queue, id, in_group, body, reason, state, failed_at)
    SELECT $1, id, "group", decode(body, 'base64'), decode(reason, 'base64'), decode(state, 'base64'), $3
    FROM json_to_recordset($2) AS letter (id uuid, "group" text, body text, reason text, state text)
    ON CONFLICT (queue, id) DO NOTHING`,
    [name, JSON.stringify(rows), new Date(clock.now())],
  )
}

export function createStored(connection: Connection, settings: Settings, { held, deleteNotes, insert }: Rest) {
  const { name, schema, timeoutMs, clock } = settings
  const table = `${schema}.hookline_dead`
  const slowMs = timeoutMs * 10
  const transact = <T>(make: (boss: PgBoss, db: Db) => Promise<T>) => connection.transact(make, slowMs)

  /** Some at a time. Sorted: two who lock the same rows do so in the same order. */
  async function inBatches(ids: readonly string[], act: (batch: string[]) => Promise<number>): Promise<number> {
    let count = 0
    for (let start = 0; start < ids.length; start += BATCH) count += await act(ids.slice(start, start + BATCH).sort())
    return count
  }

  /** Takes letters out of the list. Skips those that another process is taking. */
  function takeLetters(
    ids: readonly string[],
    change: (letters: readonly Taken[], boss: PgBoss, db: Db) => Promise<void>,
  ): Promise<number> {
    return inBatches(ids, (batch) =>
      transact(async (boss, db) => {
        const { rows } = await db.executeSql(
          `DELETE FROM ${table} WHERE queue = $1 AND id IN (
            SELECT id FROM ${table} WHERE queue = $1 AND id = ANY($2::uuid[]) FOR UPDATE SKIP LOCKED)
          RETURNING id::text, seq, in_group AS "group", body, state`,
          [name, batch],
        )
        if (rows.length > 0)
          await change(
            rows.sort((one, other) => Number(one.seq) - Number(other.seq)),
            boss,
            db,
          )
        return rows.length
      }),
    )
  }

  /** The rows of the jobs, which keep their ids known, make place for new ones. */
  async function redrive(letters: readonly Taken[], boss: PgBoss, db: Db): Promise<void> {
    await deleteRows(letters, boss, db)
    let at = Math.floor(clock.now()) * 1000
    const jobs = letters.map(({ id, group, body, state }) => {
      at += 1
      const data = { at, body: encode(body), part: id.charAt(0), ...(state !== null && { state: encode(state) }) }
      return { id, data, ...(group !== null && inGroup(group)) }
    })
    await insert(jobs, boss, db)
  }

  async function deleteRows(letters: readonly Taken[], boss: PgBoss, db: Db): Promise<void> {
    const [alone, grouped] = lanesOf(name)
    for (const [lane, some] of Map.groupBy(letters, ({ group }) => (group === null ? alone : grouped))) {
      await boss.deleteJob(
        lane,
        some.map(({ id }) => id),
        { db },
      )
    }
  }

  /** A job that waits is locked until the transaction ends: no worker claims it meanwhile. */
  async function removeSome(ids: readonly string[], boss: PgBoss, db: Db): Promise<number> {
    let count = 0
    for (const lane of lanesOf(name)) {
      const waiting: string[] = []
      for (const id of ids) {
        const { updated } = await boss.update(lane, undefined, { id, priority: 0, db })
        if (updated > 0) waiting.push(id)
      }
      if (waiting.length === 0) continue
      await boss.deleteJob(lane, waiting, { db })
      await deleteNotes(waiting, db)
      count += waiting.length
    }
    return count
  }

  return {
    async countLetters(): Promise<number> {
      const statement = `SELECT count(*)::int AS count FROM ${table} WHERE queue = $1`
      return (await transact((_boss, db) => db.executeSql(statement, [name]))).rows[0].count
    },
    async deadLetters({ after, newestFirst, limit, maxBytes }) {
      const [isBehind, way] = newestFirst ? ['<', 'DESC'] : ['>', 'ASC']
      const last = `(SELECT seq FROM ${table} WHERE queue = $1 AND id = $2)`
      const letters = `SELECT seq, length(body) AS bytes, row_number() OVER (ORDER BY seq ${way}) AS place FROM ${table}
        WHERE queue = $1 AND coalesce(seq ${isBehind} ${last}, true) ORDER BY seq ${way} LIMIT $3`
      const statement = `SELECT id::text, body, reason, state, failed_at FROM ${table}
        WHERE queue = $1 AND seq IN (${fitting(letters, '$4')}) ORDER BY ${table}.seq ${way}`
      const { rows } = await transact((_boss, db) => db.executeSql(statement, [name, after ?? null, limit, maxBytes]))
      return rows.map(({ id, body, reason, state, failed_at: failedAt }) => ({
        id,
        body,
        reason: String(reason),
        retryState: state ?? undefined,
        failedAt,
      }))
    },
    redrive: (ids) => takeLetters(ids, redrive),
    drop: (ids) => takeLetters(ids, deleteRows),
    /** What is claimed comes first and last: a job may wait again meanwhile. Of other processes, it is not seen. */
    async *jobs() {
      yield [...held]
      for (const lane of lanesOf(name)) {
        for (const part of PARTS) {
          const found = await transact((boss, db) =>
            boss.findJobs<{ body: string }>(lane, { data: { part }, queued: true, db }),
          )
          const jobs = found.filter(isOurs).map(({ id, data }) => ({ id, body: Buffer.from(data.body, 'base64') }))
          while (jobs.length > 0) yield jobs.splice(0, takePage(jobs, PAGE).length)
        }
      }
      yield [...held]
    },
    remove: (ids) => inBatches(ids, (batch) => transact((boss, db) => removeSome(batch, boss, db))),
  } satisfies Partial<QueueStore> & { countLetters(): Promise<number> }
}

interface Taken {
  readonly id: string
  readonly group: string | null
  readonly body: Uint8Array
  readonly state: Uint8Array | null
}

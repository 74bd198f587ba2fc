/** Lists, counts and changes the jobs that wait, and the dead letters, which are in a table of Hookline. */

import type { Db, PgBoss } from 'pg-boss'
import type { CheckedPage } from '../queue-store.ts'
import type { DeadLetter, StoredJob } from '../queue-types.ts'
import { PAGE, takePage } from '../walk.ts'
import type { Notes } from './notes.ts'
import type { Connection } from './pg-boss-connection.ts'
import {
  decode,
  encode,
  inGroup,
  isOurs,
  laneOf,
  PARTS,
  type PgBossClaim,
  type Pushed,
  toInsert,
} from './pg-boss-job.ts'
import { LISTING_FACTOR, type Settings } from './pg-boss-options.ts'
import { fitting, lanesOf } from './pg-boss-tables.ts'

/** The maximum number of jobs that one transaction changes. Each job takes several round trips, and a transaction has to end in time. */
const BATCH = 50

/**
 * Makes a job a dead letter, after `fail` has made the job wait in the same transaction. The row of the job stays, without its data, so
 * that its id is still known.
 */
export async function addLetter(
  { id, lane, group, body }: PgBossClaim,
  { reason, state }: { readonly reason: string; readonly state: Uint8Array | null },
  { name, schema, clock }: Settings,
  boss: PgBoss,
  db: Db,
): Promise<void> {
  await boss.update(lane, null, { id, deleteAfterSeconds: 0, db }) // Null removes the data. With 0, pg-boss never deletes the row.
  await boss.cancel(lane, id, { db })
  await db.executeSql(
    `INSERT INTO ${schema}.hookline_dead (queue, id, in_group, body, reason, state, failed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (queue, id) DO NOTHING`,
    [name, id, group ?? null, body, Buffer.from(reason), state, new Date(clock.now())],
  )
}

export async function insert(name: string, jobs: readonly Pushed[], boss: PgBoss, db: Db): Promise<void> {
  for (const [lane, some] of Map.groupBy(jobs, (job) => laneOf(name, job))) await boss.insert(lane, [...some], { db })
}

type Act = (ids: readonly string[], boss: PgBoss, db: Db) => Promise<number>

export class StoredJobs {
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #held: ReadonlySet<PgBossClaim>
  readonly #notes: Notes
  readonly #table: string

  /** @param held The jobs that this process has claimed. */
  constructor(connection: Connection, settings: Settings, held: ReadonlySet<PgBossClaim>, notes: Notes) {
    this.#connection = connection
    this.#settings = settings
    this.#held = held
    this.#notes = notes
    this.#table = `${settings.schema}.hookline_dead`
  }

  async countLetters(): Promise<number> {
    const statement = `SELECT count(*)::int AS count FROM ${this.#table} WHERE queue = $1`
    return (await this.#query(statement, []))[0].count
  }

  async deadLetters({ after, newestFirst, limit, maxBytes }: CheckedPage): Promise<readonly DeadLetter[]> {
    const table = this.#table
    const [isBehind, way] = newestFirst ? ['<', 'DESC'] : ['>', 'ASC']
    const last = `(SELECT seq FROM ${table} WHERE queue = $1 AND id = $2)`
    // If the letter `after` is gone, `last` is null, and this is the first page.
    const letters = `SELECT seq, length(body) AS bytes, row_number() OVER (ORDER BY seq ${way}) AS place FROM ${table}
      WHERE queue = $1 AND coalesce(seq ${isBehind} ${last}, true) ORDER BY seq ${way} LIMIT $3`
    const statement = `SELECT id::text, body, reason, state, failed_at FROM ${table}
      WHERE queue = $1 AND seq IN (${fitting(letters, '$4')}) ORDER BY ${table}.seq ${way}`
    const rows = await this.#query(statement, [after ?? null, limit, maxBytes])
    return rows.map(({ id, body, reason, state, failed_at: failedAt }) => ({
      id,
      body,
      reason: String(reason),
      retryState: state ?? undefined,
      failedAt,
    }))
  }

  redrive(ids: readonly string[]): Promise<number> {
    return this.#inBatches(ids, (batch, boss, db) => this.#redriveSome(batch, boss, db))
  }

  drop(ids: readonly string[]): Promise<number> {
    return this.#inBatches(ids, async (batch, boss, db) => (await this.#removeLetters(batch, boss, db)).length)
  }

  async rewrite(letters: readonly DeadLetter[]): Promise<void> {
    const rows = letters.map(({ id, body, retryState }) => {
      return { id, body: encode(body), state: retryState && encode(retryState) }
    })
    await this.#query(
      `UPDATE ${this.#table} AS letter SET body = decode(changed.body, 'base64'), state = decode(changed.state, 'base64')
      FROM json_to_recordset($2) AS changed (id uuid, body text, state text) WHERE queue = $1 AND letter.id = changed.id`,
      [JSON.stringify(rows)],
    )
  }

  /**
   * Lists the claimed jobs of this process at the beginning and again at the end, because jobs may be claimed or wait again in the
   * meantime. Does not list jobs that other processes have claimed.
   */
  async *jobs(): AsyncGenerator<readonly StoredJob[]> {
    yield [...this.#held]
    for (const lane of lanesOf(this.#settings.name)) {
      for (const part of PARTS) {
        const found = await this.#transact((boss, db) =>
          boss.findJobs<{ body: string }>(lane, { data: { part }, queued: true, db }),
        )
        const jobs = found.filter(isOurs).map(({ id, data }) => ({ id, body: decode(data.body) }))
        while (jobs.length > 0) yield jobs.splice(0, takePage(jobs, PAGE).length)
      }
    }
    yield [...this.#held]
  }

  remove(ids: readonly string[]): Promise<number> {
    return this.#inBatches(ids, (batch, boss, db) => this.#removeSome(batch, boss, db))
  }

  async #inBatches(ids: readonly string[], act: Act): Promise<number> {
    let count = 0
    for (let start = 0; start < ids.length; start += BATCH) {
      count += await this.#transact((boss, db) => act(ids.slice(start, start + BATCH), boss, db))
    }
    return count
  }

  /**
   * Deletes dead letters, and the pg-boss rows that keep their ids known. Skips dead letters that another process is deleting at the same
   * time.
   */
  async #removeLetters(ids: readonly string[], boss: PgBoss, db: Db): Promise<readonly RemovedLetter[]> {
    const { name } = this.#settings
    const { rows } = await db.executeSql(
      `DELETE FROM ${this.#table} WHERE queue = $1
        AND id IN (SELECT id FROM ${this.#table} WHERE queue = $1 AND id = ANY($2::uuid[]) FOR UPDATE SKIP LOCKED)
      RETURNING id::text, seq, in_group AS "group", body, state`,
      [name, ids],
    )
    const [alone, grouped] = lanesOf(name)
    for (const [lane, some] of Map.groupBy(rows, ({ group }) => (group === null ? alone : grouped))) {
      const removed = some.map(({ id }) => id)
      await boss.deleteJob(lane, removed, { db })
    }
    return rows.sort((one, other) => Number(one.seq) - Number(other.seq))
  }

  async #redriveSome(ids: readonly string[], boss: PgBoss, db: Db): Promise<number> {
    const { name, clock } = this.#settings
    const letters = await this.#removeLetters(ids, boss, db)
    const at = Math.floor(clock.now()) * 1000
    const jobs = letters.map(({ id, group, body, state }, index) => {
      const job = toInsert(id, body, at + index, state)
      return group === null ? job : inGroup(job, group)
    })
    await insert(name, jobs, boss, db)
    return jobs.length
  }

  /**
   * Deletes waiting jobs. Each job is first locked by an update that changes nothing, so that no worker claims the job before the
   * transaction ends. The ids are sorted, because two transactions that lock the same jobs in different orders would wait for each other.
   */
  async #removeSome(ids: readonly string[], boss: PgBoss, db: Db): Promise<number> {
    let count = 0
    for (const lane of lanesOf(this.#settings.name)) {
      const waiting: string[] = []
      for (const id of ids.toSorted()) {
        const { updated } = await boss.update(lane, undefined, { id, priority: 0, db })
        if (updated > 0) waiting.push(id)
      }
      if (waiting.length === 0) continue
      await boss.deleteJob(lane, waiting, { db })
      await this.#notes.delete(waiting, db)
      count += waiting.length
    }
    return count
  }

  async #query(statement: string, values: readonly unknown[]) {
    const { name } = this.#settings
    return (await this.#transact((_boss, db) => db.executeSql(statement, [name, ...values]))).rows
  }

  #transact<T>(make: (boss: PgBoss, db: Db) => Promise<T>): Promise<T> {
    return this.#connection.transact(make, this.#settings.timeoutMs * LISTING_FACTOR)
  }
}

interface RemovedLetter {
  readonly id: string
  readonly group: string | null
  readonly body: Uint8Array
  readonly state: Uint8Array | null
}

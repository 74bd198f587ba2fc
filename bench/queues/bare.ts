/** The engines as somebody drives them who wants only speed: jobs in by the batch, out by the batch, and nothing else. */

import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { Queue, Worker } from 'bullmq'
import { PgBoss } from 'pg-boss'
import { createCountdown } from '../parallel.ts'
import type { Place } from './place.ts'

/** An engine without Hookline. */
export interface Bare {
  /** Puts in a job for each body, under new ids, in one go. Resolves when the engine says that they are in. */
  add(bodies: readonly Uint8Array[]): Promise<void>
  /** Does so many jobs, with a handler that does nothing. */
  drain(count: number): Promise<void>
}

/** How many are claimed, and done, at a time. */
export const BATCH = 100

const openers = { sqlite: openSqlite, bullmq: openBullmq, 'pg-boss': openPgBoss }

/** Opens it. */
export async function openBare(place: Place): Promise<Bare> {
  return openers[place.engine](place)
}

/** WAL and FULL, as the package has it. A batch is a transaction that claims and one that deletes. */
function openSqlite({ at }: Place): Bare {
  const database = new DatabaseSync(at)
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, body BLOB NOT NULL, due_at INTEGER NOT NULL);
    CREATE INDEX due ON jobs (due_at);
  `)
  const insert = database.prepare('INSERT INTO jobs (id, body, due_at) VALUES (?, ?, ?)')
  const claim = database.prepare(`
    UPDATE jobs SET due_at = ? WHERE seq IN (SELECT seq FROM jobs WHERE due_at <= ? ORDER BY due_at LIMIT ${BATCH})
    RETURNING seq, id, body
  `)
  const remove = database.prepare('DELETE FROM jobs WHERE seq = ?')

  function transact<Result>(work: () => Result): Result {
    database.exec('BEGIN IMMEDIATE')
    const result = work()
    database.exec('COMMIT')
    return result
  }

  return {
    async add(bodies) {
      const now = Date.now()
      transact(() => {
        for (const body of bodies) insert.run(randomUUID(), body, now)
      })
    },
    async drain(count) {
      for (let done = 0; done < count; ) {
        const now = Date.now()
        const jobs = transact(() => claim.all(now + LEASE_MS, now))
        transact(() => {
          for (const { seq } of jobs) remove.run(seq as number)
        })
        done += jobs.length
      }
    },
  }
}

const LEASE_MS = 60_000

/** Its own Worker, which sleeps between drains; the ids of what is done stay for a day, as the package keeps them. */
async function openBullmq({ at, name }: Place): Promise<Bare> {
  const queue = new Queue(name, { connection: { url: at } })
  const worker = new Worker(name, async () => {}, {
    connection: { url: at },
    concurrency: BATCH,
    removeOnComplete: { age: 24 * 60 * 60 },
    autorun: false,
  })
  const countdown = createCountdown()
  worker.on('completed', countdown.tick)
  await queue.pause()
  void worker.run()
  return {
    async add(bodies) {
      await queue.addBulk(
        bodies.map((body) => ({ name: 'job', data: Buffer.from(body).toString(), opts: { jobId: randomUUID() } })),
      )
    },
    async drain(count) {
      const over = countdown.start(count)
      await queue.resume()
      await over
      await queue.pause()
    },
  }
}

async function openPgBoss({ at, name }: Place): Promise<Bare> {
  const boss = new PgBoss({ connectionString: at, schema: name })
  await boss.start()
  await boss.createQueue(name)
  return {
    async add(bodies) {
      await boss.insert(
        name,
        bodies.map((body) => ({ id: randomUUID(), data: { body: Buffer.from(body).toString() } })),
      )
    },
    async drain(count) {
      for (let done = 0; done < count; ) {
        const jobs = await boss.fetch(name, { batchSize: BATCH })
        await boss.complete(
          name,
          jobs.map(({ id }) => id),
        )
        done += jobs.length
      }
    },
  }
}

/** Lists dead letters, redrives and drops them: each lies in a queue of its own under the id of its job. */

import type { Db, JobWithMetadata, PgBoss } from 'pg-boss'
import type { DeadLetter } from '../queue.ts'
import type { Connection } from './connection.ts'
import { readRows } from './internals.ts'
import type { Settings } from './options.ts'
import { deadQueueOf, takeOver } from './prepare.ts'
import { createStamps, type Data, encode, readLetter, secondsOf } from './row.ts'

/** The part of a store that is about dead letters. */
export interface DeadLetters {
  list(after: string | undefined, limit: number): Promise<readonly DeadLetter[]>
  redrive(ids: readonly string[] | 'all'): Promise<number>
  drop(ids: readonly string[] | 'all'): Promise<number>
}

/** Creates it. */
export function createDeadLetters(connection: Connection, settings: Settings): DeadLetters {
  const { name, schema, timeoutMs, dedupeWindowMs, observe, clock } = settings
  const queue = deadQueueOf(name)
  const limitMs = timeoutMs * 10
  const stamp = createStamps(clock)
  let deleteAfterSeconds = secondsOf(dedupeWindowMs)

  /** Takes letters, and does with their jobs what is asked; all of it in one transaction. Returns how many. */
  function move(take: Take, change: Change): Promise<number> {
    const changed = async (boss: PgBoss, db: Db): Promise<number> => {
      const letters = await take(boss, db)
      const ids = letters.map(({ id }) => id)
      if (ids.length === 0) return 0
      await change({ letters, ids, boss, db })
      await boss.deleteJob(queue, ids, { db })
      return ids.length
    }
    return connection.transaction(changed, { limitMs })
  }

  async function moveSome(ids: readonly string[], change: Change): Promise<number> {
    let moved = 0
    for (let start = 0; start < ids.length; start += BATCH) {
      const batch = ids.slice(start, start + BATCH).sort() // Two who lock the same letters do so in the same order.
      moved += await move((boss, db) => lock(batch, boss, db), change)
    }
    return moved
  }

  async function lock(ids: readonly string[], boss: PgBoss, db: Db): Promise<Letters> {
    const letters: JobWithMetadata<unknown>[] = []
    for (const id of ids) {
      const { updated } = await boss.update(queue, undefined, { id, priority: 0, db })
      if (updated > 0) letters.push(...(await boss.findJobs<unknown>(queue, { id, db })))
    }
    return letters
  }

  /** Those that are there when it begins; others come behind them. */
  async function moveAll(change: Change): Promise<number> {
    if (!observe) await connection.call((boss) => takeOver(boss, settings), { limitMs })
    const { total } = await connection.call((boss) => boss.previewRedrive(queue), { limitMs })
    let moved = 0
    for (let count = -1; moved < total && count !== 0; moved += count) {
      const options = {
        batchSize: Math.min(BATCH, total - moved),
        includeMetadata: true,
        ignoreStartAfter: true,
      } as const
      count = await move((boss, db) => boss.fetch<unknown>(queue, { ...options, db }), change)
    }
    return moved
  }

  /** The row of the job goes on, and with it the numbers of its attempts: an old claim must not pass for a new one. */
  async function redrive({ letters, ids, boss, db }: Move): Promise<void> {
    await boss.resume(name, ids, { db })
    await boss.retry(name, ids, { db }) // Those of others may have had no retries left.
    for (const { id, data, createdOn } of letters) {
      const job: Data = { at: stamp(), body: encode(readLetter(id, data, createdOn).body) }
      const [row] = await boss.findJobs(name, { id, db })
      if (row === undefined) {
        await boss.insert(name, [{ id, data: job }], { db })
      } else {
        const before = row.startedOn === null ? 0 : row.retryCount + 1
        const options = { id, startAfter: 0, deleteAfterSeconds, priority: 0, db }
        await boss.update(name, { ...job, before }, options)
      }
    }
  }

  async function drop({ ids, boss, db }: Move): Promise<void> {
    await boss.deleteJob(name, ids, { db })
  }

  return {
    async list(after, limit) {
      const page = { schema, queue, state: 'waiting', after, limit } as const
      if (after === undefined && !observe) await connection.call((boss) => takeOver(boss, settings), { limitMs })
      const rows = await connection.call((boss) => readRows(boss.getDb(), page), { limitMs })
      return rows.map(({ id, data, startAfter }) => readLetter(id, data, startAfter))
    },
    async redrive(ids) {
      const workers = observe ? await connection.call((boss) => boss.getQueue(name)) : undefined
      deleteAfterSeconds = workers?.deleteAfterSeconds ?? deleteAfterSeconds
      return ids === 'all' ? moveAll(redrive) : moveSome(ids, redrive)
    },
    drop: (ids) => (ids === 'all' ? moveAll(drop) : moveSome(ids, drop)),
  }
}

/** Letters that this transaction holds. */
interface Move {
  readonly letters: Letters
  readonly ids: string[]
  readonly boss: PgBoss
  readonly db: Db
}

type Letters = readonly JobWithMetadata<unknown>[]
type Take = (boss: PgBoss, db: Db) => Promise<Letters>
type Change = (move: Move) => Promise<void>

/** Each letter takes up to four round trips, and a transaction has to end in time. */
const BATCH = 50

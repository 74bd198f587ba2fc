/** What is stored: dead letters, each in a queue of its own under the id of its job, and jobs. Lists, counts and changes them. */

import type { Db, JobWithMetadata, PgBoss } from 'pg-boss'
import type { QueueCounts } from '../health.ts'
import type { QueueStore } from '../store.ts'
import { PAGE } from '../walk.ts'
import type { Connection } from './connection.ts'
import type { Settings } from './options.ts'
import { deadQueueOf } from './prepare.ts'
import {
  countRows,
  createStamps,
  type Data,
  encode,
  isNote,
  putLast,
  readBody,
  readLetter,
  readRows,
  stateOf,
} from './rows.ts'

export interface Stored extends Pick<QueueStore, 'deadLetters' | 'redrive' | 'drop' | 'jobs' | 'remove'> {
  count(): Promise<QueueCounts>
}

interface Move {
  readonly letters: readonly JobWithMetadata<unknown>[]
  readonly ids: string[]
  readonly boss: PgBoss
  readonly db: Db
}

type Change = (move: Move) => Promise<void>

/** Each job takes up to four round trips, and a transaction has to end in time. */
const BATCH = 50

export function createStored(connection: Connection, { name, schema, timeoutMs, clock }: Settings): Stored {
  const deadQueue = deadQueueOf(name)
  const stamp = createStamps(clock)
  const slow = { limitMs: timeoutMs * 10 }

  /** Some at a time. Sorted: two who lock the same rows do so in the same order. */
  async function inBatches(ids: readonly string[], act: (batch: string[]) => Promise<number>): Promise<number> {
    let count = 0
    for (let start = 0; start < ids.length; start += BATCH) count += await act(ids.slice(start, start + BATCH).sort())
    return count
  }

  function move(take: (boss: PgBoss, db: Db) => Promise<Move['letters']>, change: Change): Promise<number> {
    return connection.transaction(async (boss, db) => {
      const letters = await take(boss, db)
      const ids = letters.map(({ id }) => id)
      if (ids.length === 0) return 0
      await change({ letters, ids, boss, db })
      await boss.deleteJob(deadQueue, ids, { db })
      return ids.length
    }, slow)
  }

  function moveSome(ids: readonly string[], change: Change): Promise<number> {
    return inBatches(ids, (batch) => move((boss, db) => lock(batch, boss, db), change))
  }

  async function lock(ids: readonly string[], boss: PgBoss, db: Db): Promise<Move['letters']> {
    const letters: JobWithMetadata<unknown>[] = []
    for (const id of ids) {
      const { updated } = await boss.update(deadQueue, undefined, { id, priority: 0, db })
      if (updated > 0) letters.push(...(await boss.findJobs<unknown>(deadQueue, { id, db })))
    }
    return letters
  }

  async function moveAll(change: Change): Promise<number> {
    const { total } = await connection.call((boss) => boss.previewRedrive(deadQueue), slow)
    let moved = 0
    for (let count = -1; moved < total && count !== 0; moved += count) {
      const batchSize = Math.min(BATCH, total - moved)
      const options = { batchSize, includeMetadata: true, ignoreStartAfter: true } as const
      count = await move((boss, db) => boss.fetch<unknown>(deadQueue, { ...options, db }), change)
    }
    return moved
  }

  /** The row of the job goes on, and with it the numbers of its attempts: an old claim must not pass for a new one. */
  async function redrive({ letters, ids, boss, db }: Move): Promise<void> {
    const queue = await boss.getQueue(name)
    await boss.resume(name, ids, { db })
    await boss.retry(name, ids, { db }) // Those of others may have had no retries left.
    for (const { id, data, createdOn } of letters) {
      const { body, retryState } = readLetter(id, data, createdOn)
      const job: Data = { at: stamp(), body: encode(body), ...stateOf(retryState) }
      const [row] = await boss.findJobs(name, { id, db })
      if (row === undefined) {
        await boss.insert(name, [{ id, data: job }], { db })
      } else {
        const before = row.startedOn === null ? 0 : row.retryCount + 1
        const { deleteAfterSeconds } = queue as { deleteAfterSeconds: number }
        await boss.update(name, { ...job, before }, { id, startAfter: 0, deleteAfterSeconds, priority: 0, db })
      }
    }
    await putLast(db, schema, name, ids)
  }

  async function drop({ ids, boss, db }: Move): Promise<void> {
    await boss.deleteJob(name, ids, { db })
  }

  /** A row that waits is locked until the transaction ends: no worker claims it meanwhile. */
  async function removeSome(ids: readonly string[], boss: PgBoss, db: Db): Promise<number> {
    const [waiting, ended]: [string[], string[]] = [[], []]
    for (const id of ids) {
      const { updated } = await boss.update(name, undefined, { id, priority: 0, db })
      const [row] = updated > 0 ? [] : await boss.findJobs(name, { id, db })
      if (updated > 0) waiting.push(id)
      else if (row !== undefined && row.state !== 'active') ended.push(id)
    }
    const removed = [...waiting, ...ended]
    if (removed.length > 0) await boss.deleteJob(name, removed, { db })
    if (ended.length > 0) {
      // Rows without data take their places, so that the ids stay known.
      const empty = ended.map((id) => ({ id }))
      await boss.insert(name, empty, { db })
      await boss.cancel(name, ended, { db })
    }
    return removed.length
  }

  async function countAll(boss: PgBoss): Promise<QueueCounts> {
    const counts = await countRows(boss.getDb(), schema, name)
    const { total } = await boss.previewRedrive(deadQueue)
    return { ...counts, deadLetters: total }
  }

  return {
    async deadLetters(asked) {
      const page = { schema, queue: deadQueue, state: 'waiting', ...asked } as const
      const rows = await connection.call((boss) => readRows(boss.getDb(), page), slow)
      return rows.map(({ id, data, startAfter }) => readLetter(id, data, startAfter))
    },
    redrive: (ids) => (ids === 'all' ? moveAll(redrive) : moveSome(ids, redrive)),
    drop: (ids) => (ids === 'all' ? moveAll(drop) : moveSome(ids, drop)),
    async *jobs() {
      for (let after: string | undefined; ; ) {
        const page = { schema, queue: name, state: 'any', after, ...PAGE } as const
        const rows = await connection.call((boss) => readRows(boss.getDb(), page), slow)
        after = rows.at(-1)?.id
        if (after === undefined) return
        const jobs = rows.filter(({ data }) => data !== null && !isNote(data))
        yield jobs.map(({ id, data }) => ({ id, body: readBody(data) }))
      }
    },
    remove: (ids) => inBatches(ids, (batch) => connection.transaction((boss, db) => removeSome(batch, boss, db), slow)),
    count: () => connection.call(countAll, slow),
  }
}

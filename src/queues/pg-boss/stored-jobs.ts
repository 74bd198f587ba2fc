/** The jobs that wait or are claimed, and complete ones whose bodies are still stored: lists and counts them, and deletes what is not claimed. */

import type { Db, PgBoss } from 'pg-boss'
import type { QueueCounts } from '../health.ts'
import type { StoredJob } from '../queue.ts'
import type { Connection } from './connection.ts'
import { countRows, readRows } from './internals.ts'
import type { Settings } from './options.ts'
import { deadQueueOf, USE_ID } from './prepare.ts'
import { readBody } from './row.ts'

/** The part of a store that is about them. */
export interface StoredJobs {
  jobs(): AsyncGenerator<readonly StoredJob[]>
  remove(ids: readonly string[]): Promise<number>
  /** For an observer: pg-boss itself writes to count, and to look claims and takes that back. */
  count(): Promise<QueueCounts>
}

/** Creates it. */
export function createStoredJobs(connection: Connection, { name, schema, timeoutMs }: Settings): StoredJobs {
  const limitMs = timeoutMs * 10

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
      await boss.insert(
        name,
        ended.map((id) => ({ id })),
        { db },
      )
      await boss.cancel(name, ended, { db })
    }
    return removed.length
  }

  async function countAll(boss: PgBoss): Promise<QueueCounts> {
    const counts = await countRows(boss.getDb(), schema, name)
    const { total } = await boss.previewRedrive(deadQueueOf(name))
    return { ...counts, deadLetters: total }
  }

  return {
    count: () => connection.call(countAll, { limitMs }),
    async *jobs() {
      for (let after: string | undefined; ; ) {
        const page = { schema, queue: name, state: 'any', after, limit: LISTED_AT_ONCE } as const
        const rows = await connection.call((boss) => readRows(boss.getDb(), page), { limitMs })
        after = rows.at(-1)?.id
        if (after === undefined) return
        const jobs = rows.filter(({ id, data }) => data !== null && id !== USE_ID)
        yield jobs.map(({ id, data }) => ({ id, body: readBody(data) }))
      }
    },
    async remove(ids) {
      let count = 0
      for (let start = 0; start < ids.length; start += REMOVED_AT_ONCE) {
        const some = ids.slice(start, start + REMOVED_AT_ONCE).sort() // Two who lock the same rows do so in the same order.
        count += await connection.transaction((boss, db) => removeSome(some, boss, db), { limitMs })
      }
      return count
    },
  }
}

const LISTED_AT_ONCE = 200
/** Each takes up to two round trips, and a transaction has to end in time. */
const REMOVED_AT_ONCE = 50

/** The jobs that wait or are claimed: lists them, and deletes those that wait. */

import type { StoredJob } from '../queue.ts'
import type { Connection } from './connection.ts'
import { countEach } from './dead-letters.ts'
import { bodyOf } from './job.ts'

/** All but the failed ones, which are dead letters. Complete ones are of release 0.1. */
const STATES = ['wait', 'prioritized', 'delayed', 'waiting-children', 'active', 'completed'] as const

/** Reads all ids in one step, so that a job that moves meanwhile is not missed; then the jobs, some at a time. */
export async function* listJobs(connection: Connection): AsyncGenerator<readonly StoredJob[]> {
  const ids = await connection.call(({ queue }) => queue.getRanges([...STATES], 0, -1))
  for (let start = 0; start < ids.length; start += AT_A_TIME) {
    const some = ids.slice(start, start + AT_A_TIME)
    const jobs = await connection.call(({ queue }) => Promise.all(some.map((id) => queue.getJob(id))))
    yield jobs.filter((job) => job !== undefined).map((job) => ({ id: job.id ?? '', body: bodyOf(job) }))
  }
}

const AT_A_TIME = 200

/**
 * Deletes jobs that no worker has locked. Returns how many. BullMQ says of a job that is gone, too, that it was removed: one that
 * was handled meanwhile has left its id in the dedupe window, one that is removed takes it along.
 */
export function removeJobs(connection: Connection, ids: readonly string[]): Promise<number> {
  return countEach(connection, ids, async (queue, id) => {
    const isGone = (await queue.remove(id)) === 1
    return isGone && (await queue.getDeduplicationJobId(id)) === null
  })
}

/** The dead letters: the jobs that BullMQ calls failed. */

import { type Queue, Job as StoredJob } from 'bullmq'
import type { Redis } from 'ioredis'
import type { DeadLetter } from '../queue.ts'
import type { Connection } from './connection.ts'
import { isRefusal } from './error.ts'
import { readNotes, toDeadLetter } from './job.ts'

/** Reads a page, the oldest first. */
export async function readDeadLetters(
  queue: Queue,
  after: string | undefined,
  limit: number,
): Promise<readonly DeadLetter[]> {
  const ids = await queue.getRanges(['failed'], 0, -1, true)
  const place = after === undefined ? -1 : ids.indexOf(after)
  const time = place === -1 ? undefined : (await queue.getJob(ids[place] ?? ''))?.finishedOn
  // BullMQ lists the jobs of one millisecond by their ids, so all of the first and of the last one are read.
  const before = place === -1 ? [] : await readSameTime(queue, ids.slice(0, place).reverse(), time)
  const beside = place === -1 ? [] : await readSameTime(queue, ids.slice(place), time)
  const start = Math.max(0, place) + beside.length
  const found = await Promise.all(ids.slice(start, start + limit).map((id) => queue.getJob(id)))
  const jobs = found.filter((job) => job !== undefined)
  const behind = await readSameTime(queue, ids.slice(start + limit), jobs.at(-1)?.finishedOn)
  const ordered = [...before, ...beside, ...jobs, ...behind].sort(byFailure)
  const first = ordered.findIndex(({ id }) => id === after) + 1
  return ordered.slice(first, first + limit).map(toDeadLetter)
}

async function readSameTime(queue: Queue, ids: readonly string[], time: number | undefined): Promise<StoredJob[]> {
  const jobs: StoredJob[] = []
  for (const id of ids) {
    const job = await queue.getJob(id)
    if (job === undefined || job.finishedOn !== time) break
    jobs.push(job)
  }
  return jobs
}

function byFailure(a: StoredJob, b: StoredJob): number {
  const [{ failedAt: first = 0 }, { failedAt: second = 0 }] = [readNotes(a), readNotes(b)]
  return (a.finishedOn ?? 0) - (b.finishedOn ?? 0) || first - second
}

/** Makes dead letters wait again. Returns how many. */
export async function redrive(connection: Connection, ids: readonly string[] | 'all', now: number): Promise<number> {
  return countEach(connection, ids, async (queue, id) => {
    const job = new StoredJob(queue, '', '', {}, id)
    if (!(await job.isFailed())) return false
    await job.updateProgress({ dueAt: now })
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
    return true
  })
}

/** Forgets dead letters. Returns how many, without those whose answer was lost: ioredis sends the command again, and finds nothing. */
export async function drop(connection: Connection, ids: readonly string[] | 'all'): Promise<number> {
  if (ids === 'all') return dropAll(connection)
  return countEach(connection, ids, async (queue, id, client) => {
    const parts = PARTS.map((part) => `${id}:${part}`)
    const keys = ['failed', id, ...parts, `de:${id}`].map((key) => queue.toKey(key))
    return (await client.eval(DROP, keys.length, ...keys, id)) === 1
  })
}

/**
 * Deletes a job if it is on the list, in one step: between two, the end of the process or of its connection would leave a job on
 * no list, which is never handled and keeps its id taken. BullMQ's `remove` would also delete a job that was redriven meanwhile.
 */
const DROP = `
  if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
  redis.call('DEL', unpack(KEYS, 2))
  return 1`

/** What BullMQ stores beside a job. */
const PARTS = ['logs', 'dependencies', 'processed', 'failed', 'unsuccessful']

async function dropAll(connection: Connection): Promise<number> {
  for (let count = 0; ; ) {
    const dropped = await connection.call(({ queue }) => queue.clean(0, AT_A_TIME, 'failed'))
    count += dropped.length
    if (dropped.length < AT_A_TIME) return count
  }
}

/** Does it to some at a time. Returns with how many it succeeded: others may do the same meanwhile. */
export async function countEach(
  connection: Connection,
  ids: readonly string[] | 'all',
  act: (queue: Queue, id: string, client: Redis) => Promise<boolean>,
): Promise<number> {
  const all = ids === 'all' ? await connection.call(({ queue }) => queue.getRanges(['failed'], 0, -1, true)) : ids
  let count = 0
  for (let start = 0; start < all.length; start += AT_A_TIME) {
    const some = all.slice(start, start + AT_A_TIME)
    const results = await connection.call(({ queue, client }) =>
      Promise.all(some.map((id) => unlessRefused(act(queue, id, client)))),
    )
    count += results.filter(Boolean).length
  }
  return count
}

async function unlessRefused(acted: Promise<boolean>): Promise<boolean> {
  try {
    return await acted
  } catch (error) {
    if (!isRefusal(error)) throw error
    return false
  }
}

const AT_A_TIME = 500

/** What is stored: the dead letters, which BullMQ calls failed, and the jobs that wait or are claimed. Lists and changes them. */

import { type Queue, Job as StoredJob } from 'bullmq'
import type { Redis } from 'ioredis'
import type { QueueStore } from '../store.ts'
import { PAGE } from '../walk.ts'
import { type Connection, isRefusal } from './connection.ts'
import { bodyOf, keptOf, toDeadLetter } from './job.ts'

const STATES = ['wait', 'prioritized', 'delayed', 'waiting-children', 'active'] as const

const CHANGED_AT_ONCE = 500

/**
 * Deletes a job if it is on the list, in one step: between two, the end of the process or of its connection would leave a job on
 * no list, which is never handled and keeps its id taken. BullMQ's `remove` would also delete a job that was redriven meanwhile.
 */
const DROP = `
  if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
  redis.call('DEL', unpack(KEYS, 2))
  return 1`

const PARTS = ['logs', 'dependencies', 'processed', 'failed', 'unsuccessful']

export type Stored = Pick<QueueStore, 'deadLetters' | 'redrive' | 'drop' | 'jobs' | 'remove'>

export function createStored({ call }: Connection, now: () => number): Stored {
  function failedIds(queue: Queue): Promise<string[]> {
    return queue.getRanges(['failed'], 0, -1, true)
  }

  async function readJobs(ids: readonly string[]): Promise<StoredJob[]> {
    const jobs = await call(({ queue }) => Promise.all(ids.map((id) => queue.getJob(id))))
    return jobs.filter((job) => job !== undefined)
  }

  /** Counts the first that fit into a page, at least one. A body is stored in base64. */
  async function countFitting(ids: readonly string[], maxBytes: number): Promise<number> {
    const sizes = await call(({ queue, client }) =>
      Promise.all(ids.map((id) => client.hstrlen(queue.toKey(id), 'data'))),
    )
    let bytes = 0
    const end = sizes.findIndex((size) => {
      bytes += size * 0.75
      return bytes > maxBytes
    })
    return end === -1 ? ids.length : Math.max(1, end)
  }

  /** Reads the first that fit into a page; when all of these are gone, the next ones. */
  async function readPage(ids: readonly string[], maxBytes: number): Promise<StoredJob[]> {
    for (let start = 0; start < ids.length; ) {
      const rest = ids.slice(start)
      const count = await countFitting(rest, maxBytes)
      const jobs = await readJobs(rest.slice(0, count))
      if (jobs.length > 0) return jobs
      start += count
    }
    return []
  }

  type Act = (queue: Queue, id: string, client: Redis) => Promise<boolean>

  async function countEach(ids: readonly string[], act: Act): Promise<number> {
    let count = 0
    for (let start = 0; start < ids.length; start += CHANGED_AT_ONCE) {
      const some = ids.slice(start, start + CHANGED_AT_ONCE)
      const results = await call(({ queue, client }) =>
        Promise.all(some.map((id) => unlessRefused(act(queue, id, client)))),
      )
      count += results.filter(Boolean).length
    }
    return count
  }

  async function redriveOne(queue: Queue, id: string): Promise<boolean> {
    const job = new StoredJob(queue, '', '', {}, id)
    if (!(await job.isFailed())) return false
    await job.updateProgress({ dueAt: now(), ...keptOf(await queue.getJob(id)) })
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
    return true
  }

  /** ioredis sends a command again whose answer was lost, which finds nothing: what that dropped is not counted. */
  async function dropOne(queue: Queue, id: string, client: Redis): Promise<boolean> {
    const parts = PARTS.map((part) => `${id}:${part}`)
    const keys = ['failed', id, ...parts, `de:${id}`].map((key) => queue.toKey(key))
    return (await client.eval(DROP, keys.length, ...keys, id)) === 1
  }

  async function dropAll(): Promise<number> {
    for (let count = 0; ; ) {
      const dropped = await call(({ queue }) => queue.clean(0, CHANGED_AT_ONCE, 'failed'))
      count += dropped.length
      if (dropped.length < CHANGED_AT_ONCE) return count
    }
  }

  /** BullMQ says of a job that is gone, too, that it was removed: one that was handled has left its id in the dedupe window. */
  async function removeOne(queue: Queue, id: string): Promise<boolean> {
    return (await queue.remove(id)) === 1 && (await queue.getDeduplicationJobId(id)) === null
  }

  return {
    async deadLetters({ after, limit, maxBytes, newestFirst }) {
      const ids = await call(async ({ queue, client }) => {
        const key = queue.toKey('failed')
        const rank = after === undefined ? null : await client[newestFirst ? 'zrevrank' : 'zrank'](key, after)
        const start = rank === null ? 0 : rank + 1
        return queue.getRanges(['failed'], start, start + limit - 1, !newestFirst)
      })
      return (await readPage(ids, maxBytes)).map(toDeadLetter)
    },
    redrive: async (ids) => countEach(ids === 'all' ? await call(({ queue }) => failedIds(queue)) : ids, redriveOne),
    drop: (ids) => (ids === 'all' ? dropAll() : countEach(ids, dropOne)),
    /** Reads all ids in one step, so that a job that moves meanwhile is not missed; then the jobs, some at a time. */
    async *jobs() {
      const ids = await call(({ queue }) => queue.getRanges([...STATES], 0, -1))
      for (let start = 0, end = 0; start < ids.length; start = end) {
        end = start + (await countFitting(ids.slice(start, start + PAGE.limit), PAGE.maxBytes))
        const jobs = await readJobs(ids.slice(start, end))
        yield jobs.map((job) => ({ id: job.id ?? '', body: bodyOf(job) }))
      }
    },
    remove: (ids) => countEach(ids, removeOne),
  }
}

async function unlessRefused(acted: Promise<boolean>): Promise<boolean> {
  try {
    return await acted
  } catch (error) {
    if (!isRefusal(error)) throw error
    return false
  }
}

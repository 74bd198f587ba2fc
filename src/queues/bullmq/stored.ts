/** What is stored: the dead letters, which BullMQ calls failed, the history, and the jobs that wait or are claimed. Lists and changes them. */

import { setTimeout as delay } from 'node:timers/promises'
import { type Queue, Job as StoredJob } from 'bullmq'
import type { Redis } from 'ioredis'
import type { HandledJob, Replayed } from '../api.ts'
import type { CheckedHistoryPage, HistoryStore, QueueStore } from '../store.ts'
import { PAGE } from '../walk.ts'
import { type Connection, isRefusal } from './connection.ts'
import { anew, bodyOf, keptOf, toDeadLetter, toHandled } from './job.ts'

const STATES = ['wait', 'prioritized', 'delayed', 'waiting-children', 'active', 'completed'] as const

const CHANGED_AT_ONCE = 500
/** Longer than the commands of a replay take before they are given up. Those of a process that died are in the way as long. */
const REPLAYING_MS = 5_000
const LOCKED_MS = 50

/**
 * Deletes a job if it is on the list, in one step: between two, the end of the process or of its connection would leave a job on
 * no list, which is never handled and keeps its id taken. BullMQ's `remove` would also delete a job that was redriven meanwhile.
 */
const DROP = `
  if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
  redis.call('DEL', unpack(KEYS, 2))
  return 1`

const PARTS = ['logs', 'dependencies', 'processed', 'failed', 'unsuccessful']

export type Stored = Pick<QueueStore, 'deadLetters' | 'redrive' | 'drop' | 'jobs' | 'remove' | 'history'>

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

  type Act<T> = (queue: Queue, item: T, client: Redis) => Promise<boolean>

  /** Returns those that it acted on. */
  async function takeEach<T>(items: readonly T[], act: Act<T>): Promise<readonly T[]> {
    const taken: T[] = []
    for (let start = 0; start < items.length; start += CHANGED_AT_ONCE) {
      const some = items.slice(start, start + CHANGED_AT_ONCE)
      const results = await call(({ queue, client }) =>
        Promise.all(some.map((item) => unlessRefused(act(queue, item, client)))),
      )
      taken.push(...some.filter((_, index) => results[index]))
    }
    return taken
  }

  async function countEach<T>(items: readonly T[], act: Act<T>): Promise<number> {
    return (await takeEach(items, act)).length
  }

  async function redriveOne(queue: Queue, id: string): Promise<boolean> {
    const job = new StoredJob(queue, '', '', {}, id)
    if (!(await job.isFailed())) return false
    await job.updateProgress({ dueAt: now(), ...keptOf(await queue.getJob(id)) })
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true })
    return true
  }

  /** ioredis sends a command again whose answer was lost, which finds nothing: what that dropped is not counted. */
  async function dropFrom(
    list: string,
    more: readonly string[],
    queue: Queue,
    id: string,
    client: Redis,
  ): Promise<boolean> {
    const parts = PARTS.map((part) => `${id}:${part}`)
    const keys = [list, id, ...parts, ...more].map((key) => queue.toKey(key))
    return (await client.eval(DROP, keys.length, ...keys, id)) === 1
  }

  const dropOne = (queue: Queue, id: string, client: Redis) => dropFrom('failed', [`de:${id}`], queue, id, client)

  /** By their scores, in one step: ranks would move when others are dropped or replayed meanwhile. */
  async function listHandled({
    since,
    until,
    after,
    limit,
    maxBytes,
  }: CheckedHistoryPage): Promise<readonly HandledJob[]> {
    const [time = '', lastId = ''] = after?.split('.') ?? []
    const at = Math.max(Number(time), since?.getTime() ?? 0)
    const [first, last] = [at, until === undefined ? '+inf' : `(${until.getTime()}`]
    for (let count = limit + 1; ; count *= 2) {
      const found = await call(({ queue, client }) =>
        client.zrangebyscore(queue.toKey('completed'), first, last, 'WITHSCORES', 'LIMIT', 0, count),
      )
      const pairs = found.flatMap((id, index) => (index % 2 === 0 ? [{ id, at: Number(found[index + 1]) }] : []))
      const page = pairs.filter((pair) => pair.at > Number(time) || pair.id > lastId)
      const isWhole = pairs.length < count
      const jobs = page.length >= limit || isWhole ? await readHandled(page.slice(0, limit), maxBytes) : []
      if (jobs.length > 0 || isWhole) return jobs // A page of jobs that are gone since is no end.
    }
  }

  async function findHandled(ids: readonly string[]): Promise<readonly HandledJob[]> {
    const scores = await call(({ queue, client }) =>
      Promise.all(ids.map((id) => client.zscore(queue.toKey('completed'), id))),
    )
    return readHandled(ids.flatMap((id, index) => (scores[index] == null ? [] : [{ id, at: Number(scores[index]) }])))
  }

  async function readHandled(
    pairs: readonly { id: string; at: number }[],
    maxBytes = Number.POSITIVE_INFINITY,
  ): Promise<readonly HandledJob[]> {
    const times = new Map(pairs.map(({ id, at }) => [id, at]))
    const jobs = await readPage([...times.keys()], maxBytes)
    return jobs.map((job) => toHandled(job, times.get(job.id ?? '') ?? 0))
  }

  /** One at a time for a job: with two, the state of one would go with the retry of the other. */
  async function replayOne(queue: Queue, job: Replayed, at: number, client: Redis, onLocked: (job: Replayed) => void) {
    const { id, cursor, retryState } = job
    const lock = queue.toKey(`${id}:hookline-replay`)
    if ((await client.set(lock, '', 'PX', REPLAYING_MS, 'NX')) === null) {
      onLocked(job)
      return false
    }
    try {
      const score = await client.zscore(queue.toKey('completed'), id)
      if (score === null || `${Number(score)}.${id}` !== cursor) return false
      const stored = new StoredJob(queue, '', '', {}, id)
      await stored.updateProgress(anew(at, retryState))
      await client.hdel(queue.toKey(id), 'failedReason', 'stacktrace') // Notes of an attempt that failed.
      await stored.retry('completed', { resetAttemptsMade: true, resetAttemptsStarted: true })
      return true
    } finally {
      await client.del(lock)
    }
  }

  const history: HistoryStore = {
    countsBytes: false,
    list: listHandled,
    find: findHandled,
    async replay(jobs) {
      const at = now()
      const ids: string[] = []
      for (let left = jobs; ; await delay(LOCKED_MS)) {
        const locked: Replayed[] = []
        const onLocked = (job: Replayed): void => void locked.push(job)
        const taken = await takeEach(left, (queue, job, client) => replayOne(queue, job, at, client, onLocked))
        ids.push(...taken.map(({ id }) => id))
        if (locked.length === 0) return { ids, at: new Date(at) }
        left = locked
      }
    },
    note: (name, text) =>
      call(async ({ queue, client }) => {
        const key = queue.toKey('hookline-notes')
        if (text !== undefined) await client.hsetnx(key, name, text)
        return (await client.hget(key, name)) ?? undefined
      }),
    /** Not by `clean` of BullMQ, which forgets the ids, too. */
    async drop({ before, limit }) {
      const ids = await call(({ queue, client }) =>
        client.zrangebyscore(queue.toKey('completed'), '-inf', `(${before.getTime()}`, 'LIMIT', 0, limit),
      )
      return countEach(ids, (...given) => dropFrom('completed', [], ...given))
    },
  }

  async function dropAll(): Promise<number> {
    for (let count = 0; ; ) {
      const dropped = await call(({ queue }) => queue.clean(0, CHANGED_AT_ONCE, 'failed'))
      count += dropped.length
      if (dropped.length < CHANGED_AT_ONCE) return count
    }
  }

  /** BullMQ says of a job that is gone, too, that it was removed: one that was handled has left its id in the dedupe window. */
  async function removeOne(queue: Queue, id: string, client: Redis): Promise<boolean> {
    const wasHandled = (await client.zscore(queue.toKey('completed'), id)) !== null
    const isGone = (await queue.remove(id)) === 1
    return isGone && (wasHandled || (await queue.getDeduplicationJobId(id)) === null)
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
    history,
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

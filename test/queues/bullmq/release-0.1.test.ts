/** Jobs that release 0.1 left in Redis. The fixture holds the keys as that release wrote them. */

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { bullmqQueue } from '../../../src/queues/bullmq/index.ts'
import type { ClaimedJob, Outcome, Queue } from '../../../src/queues/queue.ts'
import { needs } from '../../support/needs.ts'
import { removeQueue } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

type Key = { hash: Record<string, string> } | { zset: string[] } | { list: string[] }

const redisUrl = inject('redisUrl')
const keys: Record<string, Key> = JSON.parse(readFileSync(new URL('release-0.1.json', import.meta.url), 'utf8'))
const idOf = (number: number) => `00000000-0000-4000-8000-00000000000${number}`
const [completed, retried, dead, claimed, waiting, later] = [1, 2, 3, 4, 5, 6].map(idOf) as [
  string,
  string,
  string,
  string,
  string,
  string,
]
const WRITTEN_AT = 1795297713457
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString()

describe('a queue that release 0.1 worked on', needs('Redis'), () => {
  const connection = redisUrl ?? ''
  let redis: Redis
  let queue: Queue
  let name: string

  beforeAll(() => {
    redis = new Redis(connection)
    vi.useFakeTimers({ toFake: ['Date'] })
  })

  beforeEach(async () => {
    vi.setSystemTime(WRITTEN_AT)
    name = randomUUID()
    for (const [suffix, key] of Object.entries(keys)) {
      const path = `bull:${name}:${suffix}`
      if ('hash' in key) await redis.hset(path, key.hash)
      if ('list' in key) await redis.rpush(path, ...key.list)
      if ('zset' in key)
        for (let at = 0; at < key.zset.length; at += 2)
          await redis.zadd(path, key.zset[at + 1] as string, key.zset[at] as string)
    }
    queue = bullmqQueue({ name, connection, pollMs: 5, leaseMs: 1000 })
  })

  afterEach(async () => {
    await queue.close({ graceMs: 0 })
    await removeQueue(redis, name)
  })

  afterAll(() => {
    redis.disconnect()
    vi.useRealTimers()
  })

  function work(decide: (job: ClaimedJob) => Outcome = () => ({ complete: true })) {
    const seen = new Map<string, ClaimedJob>()
    queue.work(
      async (job) => {
        seen.set(job.id, job)
        return decide(job)
      },
      { concurrency: 10 },
    )
    return seen
  }

  it('is counted', async () => {
    expect(await queue.counts()).toEqual({
      waiting: 3,
      active: 1,
      deadLetters: 1,
      oldestDueAt: new Date(1795297713329),
      asOf: new Date(WRITTEN_AT),
    })
  })

  it('has jobs that wait, that wait for their time, that are retried and whose worker died', async () => {
    expect(await queue.redrive([retried, waiting, later])).toBe(0) // It changes nothing of what is no dead letter.
    const seen = work()
    await until(() => seen.size === 2)
    expect(seen.get(waiting)).toMatchObject({ claimCount: 1, firstAt: new Date(WRITTEN_AT), retryState: undefined })
    expect(seen.get(claimed)).toMatchObject({ claimCount: 2, firstAt: new Date(1795297712309) })
    expect([text(seen.get(waiting)?.body), text(seen.get(claimed)?.body)]).toEqual(['waiting', 'claimed'])
    vi.setSystemTime(1795297743327)
    await until(() => seen.has(later))
    vi.setSystemTime(1795297772311)
    await until(() => seen.has(retried))
    expect(seen.get(retried)).toMatchObject({ claimCount: 2, firstAt: new Date(1795297712308) })
    expect(text(seen.get(retried)?.retryState)).toBe('state \u0000')
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 1 })
  })

  it('drops the old retry state when a job is retried without one', async () => {
    const states: unknown[] = []
    work((job) => {
      if (job.id !== retried) return { complete: true }
      states.push([job.claimCount, text(job.retryState), job.firstAt.getTime()])
      return states.length === 1 ? { retryAt: new Date(0) } : { complete: true }
    })
    vi.setSystemTime(1795297772311)
    await until(() => states.length === 2)
    expect(states).toEqual([
      [2, 'state \u0000', 1795297712308],
      [3, undefined, 1795297712308],
    ])
  })

  it('has dead letters, which can be redriven as new', async () => {
    const [letter] = await queue.deadLetters()
    expect(letter).toMatchObject({ id: dead, reason: 'no \u0000 way', failedAt: new Date(1795297712312) })
    expect([text(letter?.body), text(letter?.retryState)]).toEqual(['dead', 'why'])
    expect(await queue.redrive('all')).toBe(1)
    const seen = work()
    await until(() => seen.has(dead))
    expect(seen.get(dead)).toMatchObject({ claimCount: 1, firstAt: new Date(WRITTEN_AT), retryState: undefined })
  })

  it('has dead letters, which can be dropped', async () => {
    expect(await queue.drop('all')).toBe(1)
    expect(await redis.keys(`bull:${name}:${dead}*`)).toEqual([])
  })

  it('remembers the ids of complete jobs for the dedupe window', async () => {
    const job = { id: completed, body: Buffer.from('again') }
    await queue.push([job])
    expect((await queue.counts()).waiting).toBe(3)
    const seen = work()
    await until(() => seen.size === 2)
    await queue.push([{ id: waiting, body: job.body }]) // Its id is remembered from its completion on.
    await queue.drain()
    expect([seen.size, seen.get(waiting)?.body]).toEqual([2, Buffer.from('waiting')])
    vi.setSystemTime(WRITTEN_AT + 24 * 60 * 60_000 + 1000)
    await until(() => seen.size === 4) // What waited for its time.
    await until(async () => (await redis.exists(`bull:${name}:${completed}`)) === 0)
    await queue.push([job])
    await until(() => seen.has(completed))
  })
})

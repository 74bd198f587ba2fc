/** What is in Redis: how much of it, what others put there, and how often it is asked. */

import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { Queue as Engine, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import type { HooklineError } from '../../../src/message/error.ts'
import { type BullmqQueueOptions, bullmqQueue } from '../../../src/queues/bullmq/index.ts'
import type { ClaimedJob, Outcome, Queue } from '../../../src/queues/queue.ts'
import { createReceiver } from '../../../src/receiver/receiver.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { signedRequest } from '../../../src/testing/signed-request.ts'
import { needs } from '../../support/needs.ts'
import { removeQueue } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const redisUrl = inject('redisUrl')
const complete: Outcome = { complete: true }
const jobOf = (body = 'body') => ({ id: randomUUID(), body: Buffer.from(body) })

describe('a queue on BullMQ', needs('Redis'), () => {
  const connection = redisUrl ?? ''
  const open: { queue: Queue; engine: Engine }[] = []
  let redis: Redis

  beforeAll(() => {
    redis = new Redis(connection)
  })

  afterEach(async () => {
    vi.restoreAllMocks()
    for (const { queue, engine } of open.splice(0)) {
      await queue.close({ graceMs: 0 })
      await removeQueue(redis, engine.name, engine.opts.prefix)
      await engine.close()
    }
  })

  afterAll(() => redis.disconnect())

  function setUp(options: Partial<BullmqQueueOptions> = {}) {
    const name = randomUUID()
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const queue = bullmqQueue({ name, connection, pollMs: 10, onError, ...options })
    const engine = new Engine(name, { connection: redis, prefix: options.prefix ?? 'bull' })
    open.push({ queue, engine })
    const seen: ClaimedJob[] = []
    const work = (decide: (job: ClaimedJob) => Outcome | Promise<Outcome> = () => complete, concurrency = 1) =>
      queue.work(
        async (job) => {
          seen.push(job)
          return decide(job)
        },
        { concurrency },
      )
    return { name, queue, engine, errors, seen, work }
  }

  it('keeps of a complete job its id, for the dedupe window from its push on', async () => {
    const { name, queue, work } = setUp({ dedupeWindowMs: 60_000 })
    const job = jobOf('x'.repeat(10_000))
    work()
    await queue.push([job])
    await queue.drain()
    const key = `bull:${name}:de:${job.id}`
    expect(await redis.keys(`*${job.id}*`)).toEqual([key])
    expect(await redis.pttl(key)).toBeGreaterThan(50_000)
    expect(await redis.pttl(key)).toBeLessThanOrEqual(60_000)
    expect(await redis.memory('USAGE', key)).toBeLessThan(250)
  })

  it('forgets the id after the dedupe window, not before the job is complete', async () => {
    const { queue, seen, work } = setUp({ dedupeWindowMs: 50 })
    const job = jobOf()
    await queue.push([job])
    await new Promise((resolve) => setTimeout(resolve, 100))
    await queue.push([job])
    expect((await queue.counts()).waiting).toBe(1)
    work()
    await queue.drain()
    await queue.push([job])
    await queue.drain()
    expect(seen).toHaveLength(2)
  })

  it('keeps its keys under its prefix', async () => {
    const prefix = `hookline-${randomUUID()}`
    const { name, queue } = setUp({ prefix })
    const job = jobOf()
    await queue.push([job])
    expect(await redis.exists(`${prefix}:${name}:${job.id}`)).toBe(1)
  })

  it('makes dead letters of jobs that Hookline did not write, and goes on', async () => {
    const { queue, engine, seen, work } = setUp()
    const [foreign, fragile, bare] = [randomUUID(), randomUUID(), randomUUID()]
    await engine.add('foreign', { to: 'others' }, { jobId: foreign })
    await engine.add('fragile', 'text', { jobId: fragile, removeOnFail: true, attempts: 5, backoff: 1000 })
    await redis.lpush(engine.toKey('wait'), bare)
    work()
    const job = jobOf()
    await queue.push([job])
    await queue.drain()
    expect(seen.map(({ id }) => id)).toEqual([job.id])
    const letters = await queue.deadLetters()
    expect(letters.map(({ id }) => id)).toEqual([foreign, fragile, bare])
    for (const { reason, retryState } of letters) {
      expect([reason, retryState]).toEqual(['Hookline did not write this job.', undefined])
    }
    expect(letters.map(({ body }) => Buffer.from(body).toString())).toEqual(['{"to":"others"}', '"text"', '{}'])
    expect(await queue.drop('all')).toBe(3)
  })

  it('goes on beside a job whose data is damaged, and reports it without the data', async () => {
    const { queue, engine, errors, seen, work } = setUp({ leaseMs: 100 })
    const damaged = randomUUID()
    await engine.add('damaged', {}, { jobId: damaged })
    await redis.hset(engine.toKey(damaged), 'data', '{"secret')
    work()
    await until(() => errors.length > 0)
    await queue.push([jobOf()])
    await until(() => seen.length === 1)
    expect(String(errors[0])).toContain('a job is unreadable. Got data that is not JSON. Repair')
    expect(inspect(errors, { depth: 9 })).not.toContain('secret')
  })

  it('ignores a retry by a worker whose lease another one has now, and what it wants to keep', async () => {
    const { queue, engine, seen, work } = setUp()
    const job = jobOf()
    work(async ({ id }) => {
      await redis.set(`${engine.toKey(id)}:lock`, 'another')
      return { retryAt: new Date(0), retryState: Buffer.from('late') }
    })
    await queue.push([job])
    await until(() => seen.length === 1)
    await queue.drain()
    const stored = await engine.getJob(job.id)
    expect([await stored?.getState(), stored?.failedReason, stored?.stacktrace]).toEqual(['active', undefined, []])
  })

  it.each<[string, Outcome]>([
    ['complete', complete],
    ['a retry', { retryAt: new Date(0), retryState: Buffer.from('late') }],
    ['a dead letter', { deadLetter: 'late' }],
  ])('ignores an outcome after the lease, and claims the job again: %s', async (_what, outcome) => {
    const { queue, engine, errors, seen, work } = setUp({ leaseMs: 400 })
    work(async ({ id, claimCount }) => {
      if (claimCount > 1) return complete
      await redis.del(`${engine.toKey(id)}:lock`)
      return outcome
    })
    await queue.push([jobOf()])
    await until(() => seen.length === 2)
    await queue.drain()
    expect(seen[1]).toMatchObject({ claimCount: 2, firstAt: seen[0]?.firstAt, retryState: undefined })
    expect(errors).toEqual([])
  })

  it('renews the leases of jobs that take long', async () => {
    const { queue, engine, seen, work } = setUp({ leaseMs: 1500 })
    const held = Promise.withResolvers<Outcome>()
    const jobs = [jobOf(), jobOf()]
    const leftMs = () => Promise.all(jobs.map(({ id }) => redis.pttl(`${engine.toKey(id)}:lock`)))
    work(() => held.promise, 10)
    await queue.push(jobs)
    await until(async () => (await leftMs()).every((ms) => ms > 0 && ms < 1200))
    await until(async () => (await leftMs()).every((ms) => ms > 1300))
    held.resolve(complete)
    await queue.drain()
    expect(seen).toHaveLength(2)
  })

  it('loses the jobs of a blocked event loop after the lease, says so, and gives up a message that always does', async () => {
    const { queue, errors } = setUp({ leaseMs: 200 })
    const reported: HooklineError[] = []
    const receiver = createReceiver({
      allowUnsigned: true,
      inbox: queue,
      onError: (error) => reported.push(error),
    })
    let calls = 0
    receiver.on('*', () => {
      calls += 1
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
    })
    const { bytes, headers } = signedRequest(fixtures.track, 'unused')
    await receiver.receive(bytes, headers)
    receiver.start()
    await until(() => reported.length > 0)
    await queue.drain()
    expect(calls).toBeGreaterThanOrEqual(5) // More on a machine that is itself late.
    const [letter, ...others] = await receiver.deadLetters()
    expect([letter?.reason, letter?.attempts, others]).toEqual(['lease_lapsed', 0, []])
    expect(letter?.error.message).toMatch(/Got \d+ claims that ended before: event loop blocked for \d\.\d s\./)
    expect(reported).toMatchObject([{ code: 'lease_lapsed' }])
    expect(errors.length).toBeGreaterThanOrEqual(5)
    for (const error of errors) expect(error).toMatchObject({ code: 'lease_lapsed' })
  }, 20_000)

  it('stores pushes that are under way when it closes', async () => {
    const { queue, engine } = setUp()
    const push = queue.push([jobOf()])
    await queue.close({ graceMs: 0 })
    await push
    expect(await engine.getWaitingCount()).toBe(1)
  })

  it('stores more jobs at once than one batch holds', async () => {
    const { queue, seen, work } = setUp()
    const jobs = Array.from({ length: 1200 }, () => jobOf())
    await Promise.all([queue.push(jobs), ...jobs.map((job) => queue.push([job]))])
    expect((await queue.counts()).waiting).toBe(1200)
    work(() => complete, 100)
    await queue.drain()
    expect(new Set(seen.map(({ id }) => id)).size).toBe(1200)
  })

  it('counts only claims that a handler saw, however soon it is closed', async () => {
    const { queue, name } = setUp()
    await queue.push([jobOf()])
    let seen = 0
    for (let waitMs = 0; waitMs < 12; waitMs += 1) {
      const another = bullmqQueue({ name, connection })
      another.work(async () => ({ retryAt: new Date(++seen) }), { concurrency: 1 })
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      await another.close({ graceMs: 0 })
    }
    const claimCount = await new Promise((resolve) => {
      queue.work(
        async (job) => {
          resolve(job.claimCount)
          return complete
        },
        { concurrency: 1 },
      )
    })
    expect(claimCount).toBe(seen + 1)
    await queue.drain()
  })

  it('asks Redis once a look while it is idle, and for more jobs as it finds more', async () => {
    const { queue, seen, work } = setUp({ pollMs: 50 })
    const asked = vi.spyOn(Worker.prototype, 'getNextJob')
    work(() => complete, 50)
    await until(() => asked.mock.calls.length > 1)
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(asked.mock.calls.length).toBeLessThan(15)
    asked.mockClear()
    await queue.push(Array.from({ length: 50 }, () => jobOf()))
    await queue.drain()
    expect(seen).toHaveLength(50)
    expect(asked.mock.calls.length).toBeLessThan(150)
  })

  it('waits in drain for jobs that are due while it is paused', async () => {
    const { name, queue, seen, work } = setUp()
    work()
    await queue.push([jobOf()])
    await queue.drain()
    queue.pause()
    const other = bullmqQueue({ name, connection })
    await other.push([jobOf()])
    await other.close({ graceMs: 0 })
    let isDrained = false
    const drain = queue.drain().then(() => {
      isDrained = true
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect([isDrained, seen.length]).toEqual([false, 1])
    queue.resume()
    await drain
    expect(seen).toHaveLength(2)
  })

  it('claims nothing while the queue is paused through BullMQ, and neither spins nor waits in drain', async () => {
    const { queue, engine, seen, work } = setUp({ pollMs: 50 })
    await engine.pause()
    await queue.push([jobOf()])
    const asked = vi.spyOn(Worker.prototype, 'getNextJob')
    work(() => complete, 10)
    await queue.drain()
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect([seen.length, asked.mock.calls.length < 15]).toEqual([0, true])
    await engine.resume()
    await until(() => seen.length === 1)
  })
})

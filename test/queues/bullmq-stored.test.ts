/** What stands in Redis: how much of it, and what others put there. */

import { randomUUID } from 'node:crypto'
import { Queue as Engine } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { type BullmqQueueOptions, bullmqQueue } from '../../src/queues/bullmq.ts'
import { readOptions } from '../../src/queues/bullmq-options.ts'
import type { ClaimedJob, Outcome, Queue } from '../../src/queues/queue.ts'
import { until } from '../support/until.ts'

const redisUrl = inject('redisUrl')
const done: Outcome = { done: true }
const jobOf = (body = 'body') => ({ id: randomUUID(), body: Buffer.from(body) })

describe.skipIf(redisUrl === undefined)('a queue on BullMQ', () => {
  const connection = redisUrl ?? ''
  const open: { queue: Queue; engine: Engine }[] = []
  let redis: Redis

  beforeAll(() => {
    redis = new Redis(connection)
  })

  afterEach(async () => {
    for (const { queue, engine } of open.splice(0)) {
      await queue.close({ graceMs: 0 })
      await engine.obliterate({ force: true })
      await engine.close()
    }
  })

  afterAll(() => redis.disconnect())

  function setUp(options: Partial<BullmqQueueOptions> = {}) {
    const name = randomUUID()
    const queue = bullmqQueue({ name, connection, ...options })
    const engine = new Engine(name, { connection: redis, prefix: options.prefix ?? 'bull' })
    open.push({ queue, engine })
    const seen: ClaimedJob[] = []
    const work = (decide: (job: ClaimedJob) => Outcome | Promise<Outcome> = () => done, concurrency = 1) =>
      queue.work(
        async (job) => {
          seen.push(job)
          return decide(job)
        },
        { concurrency },
      )
    return { name, queue, engine, seen, work }
  }

  it('keeps ids, and no bodies, of jobs that are done', async () => {
    const { queue, engine, work } = setUp()
    const job = jobOf('x'.repeat(10_000))
    work()
    await queue.push([job])
    await queue.drain()
    expect(await redis.exists(engine.toKey(job.id))).toBe(1)
    await queue.close({ graceMs: 0 })
    expect(await redis.memory('USAGE', engine.toKey(job.id))).toBeLessThan(200)
    expect(await redis.hgetall(engine.toKey(job.id))).toEqual({ data: '""' })
  })

  it('keeps its keys under the prefix it was told', async () => {
    const prefix = `hookline-${randomUUID()}`
    const { name, queue } = setUp({ prefix })
    const job = jobOf()
    await queue.push([job])
    expect(await redis.exists(`${prefix}:${name}:${job.id}`)).toBe(1)
  })

  it('sets what it was not given aside, and goes on', async () => {
    const { queue, engine, seen, work } = setUp()
    const [foreign, unreadable, bare] = [randomUUID(), randomUUID(), randomUUID()]
    await engine.add('foreign', { to: 'somebody else' }, { jobId: foreign })
    await engine.add('unreadable', {}, { jobId: unreadable })
    await redis.hset(engine.toKey(unreadable), 'data', '{"cut o')
    await redis.lpush(engine.toKey('wait'), bare)
    work()
    const job = jobOf()
    await queue.push([job])
    await queue.drain()
    expect(seen.map(({ id }) => id)).toEqual([job.id])
    const reason = 'This is no job that the queue was given.'
    const order: string[] = [foreign, unreadable, bare] // Those that die in one millisecond are listed by their ids.
    const dead = (await queue.dead()).toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id))
    expect(dead).toMatchObject([
      { id: foreign, reason, state: undefined },
      { id: unreadable, reason },
      { id: bare, reason },
    ])
    expect(dead.map(({ body }) => Buffer.from(body).toString())).toEqual([
      '{"to":"somebody else"}',
      '{"unreadable":"{\\"cut o"}',
      '{}',
    ])
    expect(await queue.drop('all')).toBe(3)
  })

  it('lists those that died in one millisecond in the order they died, in pages too', async () => {
    const { queue, engine, work } = setUp()
    const jobs = Array.from({ length: 9 }, () => jobOf())
    work(() => ({ dead: '' }))
    await queue.push(jobs)
    await queue.drain()
    for (const { id } of jobs) {
      await redis.zadd(engine.toKey('failed'), 5000, id)
      await redis.hset(engine.toKey(id), 'finishedOn', 5000)
    }
    const ids = jobs.map(({ id }) => id)
    const paged: string[] = []
    for (let after: string | undefined; ; after = paged.at(-1)) {
      const page = await queue.dead(after === undefined ? { limit: 4 } : { after, limit: 4 })
      if (page.length === 0) break
      paged.push(...page.map(({ id }) => id))
    }
    expect(paged).toEqual(ids)
    expect((await queue.dead({ after: ids[0] ?? '', limit: 1 })).map(({ id }) => id)).toEqual([ids[1]])
  })

  it('counts a re-driven job as due since then', async () => {
    const { queue, engine, work } = setUp()
    const other = setUp()
    const job = { ...jobOf(), notBefore: 1_000_000 }
    work(() => ({ dead: 'no' }))
    await queue.push([job])
    await queue.drain()
    await queue.close({ graceMs: 0 })
    await other.queue.close({ graceMs: 0 })
    const again = bullmqQueue({ name: engine.name, connection })
    const before = Date.now()
    expect(await again.redrive('all')).toBe(1)
    expect((await again.counts()).oldestDueAt).toBeGreaterThanOrEqual(before)
    await again.close({ graceMs: 0 })
  })

  it('re-drives and drops each of the dead once, whoever else does the same', async () => {
    const { name, queue, work } = setUp()
    const other = bullmqQueue({ name, connection })
    let outcome: Outcome = { dead: 'no' }
    work(() => outcome)
    await queue.push(Array.from({ length: 20 }, () => jobOf()))
    await queue.drain()
    outcome = { retryAt: Date.now() + 60_000 }
    const redriven = await Promise.all([queue.redrive('all'), other.redrive('all')])
    expect(redriven[0] + redriven[1]).toBe(20)
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 20, active: 0, dead: 0 })
    await other.close({ graceMs: 0 })
  })

  it('puts in what is on its way when it closes', async () => {
    const { queue, engine } = setUp()
    const push = queue.push([jobOf()])
    await queue.close({ graceMs: 0 })
    await push
    expect(await engine.getDelayedCount()).toBe(1)
  })

  it('puts more in at once than go in one round trip', async () => {
    const { queue, seen, work } = setUp()
    const jobs = Array.from({ length: 1200 }, () => jobOf())
    await Promise.all([queue.push(jobs), ...jobs.map((job) => queue.push([job]))])
    expect((await queue.counts()).waiting).toBe(1200)
    work(() => done, 100)
    await queue.drain()
    expect(new Set(seen.map(({ id }) => id)).size).toBe(1200)
  })

  it('counts only what a handler saw, however soon it is closed', async () => {
    const { queue, name } = setUp()
    await queue.push([jobOf()])
    let seen = 0
    for (let waitMs = 0; waitMs < 12; waitMs += 1) {
      const another = bullmqQueue({ name, connection })
      another.work(async () => ({ retryAt: ++seen && 0 }), { concurrency: 1 })
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      await another.close({ graceMs: 0 })
    }
    const deliveries = await new Promise((resolve) => {
      queue.work(
        async (job) => {
          resolve(job.deliveries)
          return done
        },
        { concurrency: 1 },
      )
    })
    expect(deliveries).toBe(seen + 1)
    await queue.drain()
  })

  it('says when the outcome of a job came too late, and hands it out again', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => {
      errors.push(error)
      throw new Error('an observer that fails')
    }
    const { queue, engine, seen, work } = setUp({ leaseMs: 200, onError })
    work(async ({ id, deliveries }) => {
      if (deliveries > 1) return done
      await redis.del(`${engine.toKey(id)}:lock`)
      return { retryAt: 0, state: Buffer.from('late') }
    })
    await queue.push([jobOf()])
    await until(() => seen.length === 2)
    await queue.drain()
    expect(String(errors[0])).toContain('Missing lock')
    expect(seen[1]).toMatchObject({ deliveries: 2, state: undefined })
  })
})

describe('bullmqQueue tells the developer', () => {
  const connection = 'redis://127.0.0.1:6379'

  it.each([
    ['its options', undefined],
    ['its options', null],
    ['name', { connection }],
    ['name', { name: '', connection }],
    ['name', { name: 'a:b', connection }],
    ['connection', { name: 'a' }],
    ['connection', { name: 'a', connection: 'http://:hush@127.0.0.1' }],
    ['connection', { name: 'a', connection: ':hush' }],
    ['connection', { name: 'a', connection: null }],
    ['prefix', { name: 'a', connection, prefix: '' }],
    ['leaseMs', { name: 'a', connection, leaseMs: 99 }],
    ['knownForMs', { name: 'a', connection, knownForMs: 0 }],
    ['commandTimeoutMs', { name: 'a', connection, commandTimeoutMs: 0 }],
    ['onError', { name: 'a', connection, onError: 'log' }],
    ['concurrency', { name: 'a', connection, concurrency: 5 }],
  ])('of a wrong %s: %j', (what, options) => {
    const create = () => bullmqQueue(options as never)
    expect(create).toThrow(TypeError)
    expect(create).toThrow(what)
    expect(create).not.toThrow('hush')
  })
})

describe('what goes wrong with Redis', () => {
  const settings = () => readOptions({ name: 'a', connection: 'redis://127.0.0.1' })

  it('is printed, and the same not again before a minute has passed', () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {})
    const time = vi.spyOn(performance, 'now').mockReturnValue(1_000_000)
    const { onError } = settings()
    const refused = () => new Error('connect ECONNREFUSED')
    onError(refused())
    onError(refused())
    expect(print).toHaveBeenCalledTimes(1)
    expect(print.mock.calls[0]?.[0]).toMatchObject({
      code: 'queue_unavailable',
      cause: { message: 'connect ECONNREFUSED' },
    })
    onError('something else')
    expect(print).toHaveBeenCalledTimes(2)
    onError('something else')
    time.mockReturnValue(1_060_000)
    onError('something else')
    expect(print).toHaveBeenCalledTimes(3)
    vi.restoreAllMocks()
  })
})

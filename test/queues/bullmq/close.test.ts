/** A worker that closes: what it claims too late, and what it releases. */

import { randomUUID } from 'node:crypto'
import { Queue as Engine, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { bullmqQueue } from '../../../src/queues/bullmq/index.ts'
import type { ClaimedJob, Queue } from '../../../src/queues/queue.ts'
import { needs } from '../../support/needs.ts'
import { removeQueue } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const redisUrl = inject('redisUrl')

describe('a worker on BullMQ that closes', needs('Redis'), () => {
  const connection = redisUrl ?? ''
  const engines: Engine[] = []
  let redis: Redis

  beforeAll(() => {
    redis = new Redis(connection)
  })

  afterEach(async () => {
    vi.restoreAllMocks()
    for (const engine of engines.splice(0)) {
      await removeQueue(redis, engine.name)
      await engine.close()
    }
  })

  afterAll(() => redis.disconnect())

  function setUp() {
    const name = randomUUID()
    const engine = new Engine(name, { connection: redis })
    engines.push(engine)
    const claims = async () => {
      const events = await redis.xrange(engine.toKey('events'), '-', '+')
      return events.filter(([, fields]) => fields[1] === 'active').length
    }
    const open = (options = {}) => bullmqQueue({ name, connection, pollMs: 10, ...options })
    return {
      queue: open(),
      open,
      engine,
      claims,
      jobOf: (text: string) => ({ id: randomUUID(), body: Buffer.from(text) }),
    }
  }

  async function firstSeen(queue: Queue): Promise<ClaimedJob> {
    const { promise, resolve } = Promise.withResolvers<ClaimedJob>()
    queue.work(
      async (job) => {
        resolve(job)
        return { complete: true }
      },
      { concurrency: 1 },
    )
    const job = await promise
    await queue.close({ graceMs: 1000 })
    return job
  }

  /** Works until a claim is under way, and closes then. Returns how many jobs the handler saw. */
  async function closeDuringClaim(queue: Queue): Promise<number> {
    const { getNextJob } = Worker.prototype
    let closed: Promise<unknown> | undefined
    let seen = 0
    vi.spyOn(Worker.prototype, 'getNextJob').mockImplementation(async function (this: Worker, ...args) {
      const job = await getNextJob.apply(this, args)
      if (job !== undefined) closed ??= queue.close({ graceMs: 0 })
      return job
    })
    queue.work(async () => ({ retryAt: new Date(++seen) }), { concurrency: 1 })
    await until(() => closed !== undefined)
    await closed
    vi.restoreAllMocks()
    return seen
  }

  it('during a claim releases the job, and that claim does not count', async () => {
    const { queue, open, engine, claims, jobOf } = setUp()
    await queue.push([jobOf('body')])
    expect(await closeDuringClaim(queue)).toBe(0)
    expect([await claims(), await engine.getWaitingCount()]).toEqual([1, 1])
    const before = Date.now()
    const job = await firstSeen(open())
    expect(job.claimCount).toBe(1)
    expect(job.firstAt.getTime()).toBeGreaterThanOrEqual(before)
  })

  it('during a claim releases the job with what was kept with it', async () => {
    const { queue, open, jobOf } = setUp()
    const seen: ClaimedJob[] = []
    await queue.push([jobOf('body')])
    const retry = async (job: ClaimedJob) => {
      seen.push(job)
      queue.pause()
      return { retryAt: new Date(0), retryState: Buffer.from('kept') }
    }
    queue.work(retry, { concurrency: 1 })
    await until(() => seen.length === 1)
    await queue.close({ graceMs: 1000 })
    expect(await closeDuringClaim(open())).toBe(0)
    expect(await closeDuringClaim(open())).toBe(0)
    expect(await firstSeen(open())).toMatchObject({
      claimCount: 2,
      firstAt: seen[0]?.firstAt,
      retryState: Buffer.from('kept'),
    })
  })

  it('during a claim releases the job; the first time of the next claim outlives a lapsed lease', async () => {
    const { queue, open, engine, jobOf } = setUp()
    const job = jobOf('body')
    await queue.push([job])
    expect(await closeDuringClaim(queue)).toBe(0)
    const next = open({ leaseMs: 200 })
    const seen: ClaimedJob[] = []
    const handle = async (claimed: ClaimedJob) => {
      seen.push(claimed)
      if (seen.length > 1) return { complete: true } as const
      await until(() => seen.length > 1)
      return { complete: true } as const
    }
    next.work(handle, { concurrency: 2 })
    await until(() => seen.length === 1)
    await new Promise((resolve) => setTimeout(resolve, 30)) // The first time is noted after a turn.
    await redis.del(`${engine.toKey(job.id)}:lock`)
    await until(() => seen.length === 2)
    expect(seen[1]).toMatchObject({ claimCount: 2, firstAt: seen[0]?.firstAt })
    await next.close({ graceMs: 0 })
  })

  it('releases several jobs in their order', async () => {
    const { queue, open, jobOf } = setUp()
    const jobs = ['a', 'b', 'c'].map(jobOf)
    let seen = 0
    queue.work(() => new Promise(() => (seen += 1)), { concurrency: 3 })
    await queue.push(jobs)
    await until(() => seen === 3)
    await queue.close({ graceMs: 0 })
    const ids: string[] = []
    const next = open()
    next.work(
      async ({ id }) => {
        ids.push(id)
        return { complete: true }
      },
      { concurrency: 1 },
    )
    await next.drain()
    await next.close({ graceMs: 0 })
    expect(ids).toEqual(jobs.map(({ id }) => id))
  })

  it('does not claim what it released, and another worker gets that first', async () => {
    const { queue, open, claims, jobOf } = setUp()
    const [running, waiting] = [jobOf('running'), jobOf('waiting')]
    let seen = 0
    queue.work(() => new Promise(() => (seen += 1)), { concurrency: 1 })
    await queue.push([running])
    await until(() => seen === 1)
    await queue.push([waiting])
    await queue.close({ graceMs: 0 })
    expect([seen, await claims()]).toEqual([1, 1])
    expect(await firstSeen(open())).toMatchObject({ id: running.id, claimCount: 2 })
  })
})

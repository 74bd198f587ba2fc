/** A worker that closes: what it claimed too late, and what it gave back itself. */

import { randomUUID } from 'node:crypto'
import { Queue as Engine, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { bullmqQueue } from '../../src/queues/bullmq.ts'
import { until } from '../support/until.ts'

const redisUrl = inject('redisUrl')

describe.skipIf(redisUrl === undefined)('a worker on BullMQ that closes', () => {
  const connection = redisUrl ?? ''
  const engines: Engine[] = []
  let redis: Redis

  beforeAll(() => {
    redis = new Redis(connection)
  })

  afterEach(async () => {
    vi.restoreAllMocks()
    for (const engine of engines.splice(0)) {
      await engine.obliterate({ force: true })
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
    return { queue: bullmqQueue({ name, connection }), engine, claims, id: randomUUID() }
  }

  it('while a claim is under way gives the job back uncounted', async () => {
    const { queue, engine, claims, id } = setUp()
    const prototype = Worker.prototype as unknown as { moveToActive: (...args: unknown[]) => Promise<unknown> }
    const claim = prototype.moveToActive
    let closed: Promise<unknown> | undefined
    let seen = 0
    vi.spyOn(prototype, 'moveToActive').mockImplementation(async function (this: unknown, ...args) {
      const job = await claim.apply(this, args)
      if (job !== undefined) closed ??= queue.close({ graceMs: 0 })
      return job
    })
    await queue.push([{ id, body: Buffer.from('body') }])
    queue.work(async () => ({ retryAt: ++seen }), { concurrency: 1 })
    await until(() => closed !== undefined)
    await closed
    expect([seen, await claims()]).toEqual([0, 1])
    expect(await redis.hget(engine.toKey(id), 'ats')).toBe('0')
    expect(await engine.getWaitingCount()).toBe(1)
  })

  it('does not claim what it gave back itself', async () => {
    const { queue, engine, claims, id } = setUp()
    let seen = 0
    queue.work(() => new Promise(() => (seen += 1)), { concurrency: 3 })
    await queue.push([{ id, body: Buffer.from('body') }])
    await until(() => seen === 1)
    await queue.close({ graceMs: 0 })
    expect([seen, await claims()]).toEqual([1, 1])
    expect(await redis.hget(engine.toKey(id), 'ats')).toBe('1')
  })
})

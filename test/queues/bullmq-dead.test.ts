/** Calls on the dead that meet: in one queue, of two processes, and with the end. */

import { randomUUID } from 'node:crypto'
import { Queue as Engine } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { bullmqQueue } from '../../src/queues/bullmq.ts'
import { dropDead, redriveDead } from '../../src/queues/bullmq-dead.ts'
import type { Outcome, Queue } from '../../src/queues/queue.ts'

const redisUrl = inject('redisUrl')

describe.skipIf(redisUrl === undefined)('the dead of a queue on BullMQ', () => {
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

  /** With so many dead. */
  async function setUp(count: number) {
    const name = randomUUID()
    const queue = bullmqQueue({ name, connection })
    const engine = new Engine(name, { connection: redis })
    open.push({ queue, engine })
    const ids = Array.from({ length: count }, () => randomUUID())
    let outcome: Outcome = { dead: 'no' }
    queue.work(async () => outcome, { concurrency: 10 })
    await queue.push(ids.map((id) => ({ id, body: Buffer.from('body') })))
    await queue.drain()
    outcome = { retryAt: Date.now() + 60_000, state: Buffer.from('kept') }
    return { queue, engine, id: ids[0] ?? '' }
  }

  /** A client before whose calls of one kind something else happens. */
  function meddled(meddle: () => Promise<unknown>): Redis {
    let isDone = false
    return new Proxy(redis, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return async (...args: unknown[]) => {
          const result: unknown = await value.apply(target, args)
          if (key === 'zmscore' && !isDone) {
            isDone = true
            await meddle()
          }
          return result
        }
      },
    })
  }

  it('are re-driven all the same by a call that was under way when it closed', async () => {
    const { queue, engine } = await setUp(1200)
    const redriven = queue.redrive('all')
    await queue.close({ graceMs: 0 })
    expect(await redriven).toBe(1200)
    expect(await engine.getFailedCount()).toBe(0)
  })

  it('are not dropped when somebody has re-driven them meanwhile', async () => {
    const { queue, engine, id } = await setUp(1)
    const client = meddled(async () => {
      await queue.redrive('all')
      await queue.drain()
    })
    expect(await dropDead(engine, client, 'all')).toBe(0)
    expect(await redis.hget(engine.toKey(id), 'progress')).toContain('"state"')
    expect(await queue.counts()).toMatchObject({ waiting: 1, dead: 0 })
  })

  it('keep their state when somebody has re-driven them meanwhile, and are re-driven once', async () => {
    const { queue, engine, id } = await setUp(1)
    const client = meddled(async () => {
      await queue.redrive('all')
      await queue.drain()
    })
    expect(await redriveDead(engine, client, 'all', Date.now())).toBe(0)
    expect(await redis.hget(engine.toKey(id), 'progress')).toContain('"state"')
    expect(await queue.counts()).toMatchObject({ waiting: 1, dead: 0 })
  })

  it('are listed first where others took away when they died', async () => {
    const { queue, engine } = await setUp(3)
    const [, second, third] = await queue.dead()
    for (const job of [second, third]) await redis.hdel(engine.toKey(job?.id ?? ''), 'finishedOn')
    const [first, next, last] = await queue.dead()
    expect([first, next]).toMatchObject([
      { id: second?.id, diedAt: 0 },
      { id: third?.id, diedAt: 0 },
    ])
    expect(last?.diedAt).toBeGreaterThan(0)
  })

  it('are gone when they are dropped: nothing of them is left, and their ids are new', async () => {
    const { queue, engine, id } = await setUp(1)
    await (await engine.getJob(id))?.log('by hand')
    expect(await queue.drop([id])).toBe(1)
    expect(await redis.keys(`${engine.toKey(id)}*`)).toEqual([])
    await queue.push([{ id, body: Buffer.from('body') }])
    await queue.drain()
    expect((await queue.counts()).waiting).toBe(1)
  })
})

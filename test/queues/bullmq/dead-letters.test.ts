/** Calls about dead letters that meet: in one queue, of two processes, and while it closes. Their order. */

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Queue as Engine, Job as StoredJob } from 'bullmq'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { bullmqQueue } from '../../../src/queues/bullmq/index.ts'
import type { Outcome, Queue } from '../../../src/queues/queue.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { needs } from '../../support/needs.ts'
import { removeQueue } from '../../support/redis.ts'

const redisUrl = inject('redisUrl')

describe('the dead letters of a queue on BullMQ', needs('Redis'), () => {
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
      await removeQueue(redis, engine.name)
      await engine.close()
    }
  })

  afterAll(() => redis.disconnect())

  /** A queue with so many dead letters, that retries each later from now on. */
  async function setUp(count: number) {
    const name = randomUUID()
    const queue = bullmqQueue({ name, connection, pollMs: 10 })
    const engine = new Engine(name, { connection: redis })
    open.push({ queue, engine })
    const ids = Array.from({ length: count }, () => randomUUID())
    let outcome: Outcome = { deadLetter: 'no' }
    queue.work(async () => outcome, { concurrency: 10 })
    await queue.push(ids.map((id) => ({ id, body: Buffer.from('body') })))
    await queue.drain()
    outcome = { retryAt: new Date(Date.now() + 60_000), retryState: Buffer.from('kept') }
    return { name, queue, engine, ids, id: ids[0] ?? '' }
  }

  it('are all redriven by a call that is under way when the queue closes', async () => {
    const { queue, engine } = await setUp(501)
    const { setTimeout } = systemClock
    const slowly = vi.spyOn(systemClock, 'setTimeout') // Closing waits half a second, which is short on a busy machine.
    slowly.mockImplementation((callback, ms) => setTimeout(callback, ms * 100))
    const redriven = queue.redrive('all')
    await queue.close({ graceMs: 0 })
    expect(await redriven).toBe(501)
    expect(await engine.getFailedCount()).toBe(0)
  })

  it('keep what a redrive elsewhere led to, and are redriven once', async () => {
    const { queue, engine, id } = await setUp(1)
    const { isFailed } = StoredJob.prototype
    vi.spyOn(StoredJob.prototype, 'isFailed').mockImplementationOnce(async function (this: StoredJob) {
      const was = await isFailed.call(this)
      expect(await queue.redrive('all')).toBe(1)
      await queue.drain()
      return was
    })
    expect(await queue.redrive('all')).toBe(0)
    const job = await engine.getJob(id)
    expect(job?.stacktrace).toHaveLength(1)
    expect(job?.stacktrace?.[0]).toContain(Buffer.from('kept').toString('base64'))
    expect(await queue.counts()).toMatchObject({ waiting: 1, deadLetters: 0 })
  })

  it('are redriven or dropped, when two processes do both to all of them', async () => {
    const { name, queue } = await setUp(300)
    const other = bullmqQueue({ name, connection })
    const [redriven, dropped, again] = await Promise.all([
      queue.redrive('all'),
      other.drop('all'),
      other.redrive('all'),
    ])
    expect(redriven + dropped + again).toBe(300)
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: redriven + again, active: 0, deadLetters: 0 })
    await other.close({ graceMs: 0 })
  })

  it('are redriven or dropped, when two processes do both to each of them', async () => {
    const { name, queue, ids } = await setUp(300)
    const other = bullmqQueue({ name, connection })
    await other.counts() // It is connected.
    const dropLater = async (id: string, turns: number) => {
      for (let turn = 0; turn < turns; turn++) await nextTurn()
      return other.drop([id])
    }
    const counts = await Promise.all(
      ids.map((id, index) => Promise.all([queue.redrive([id]), dropLater(id, index % 30)])),
    )
    for (const [redriven, dropped] of counts) expect(redriven + dropped).toBe(1)
    await queue.drain()
    const waiting = counts.filter(([redriven]) => redriven === 1).length
    expect(await queue.counts()).toMatchObject({ waiting, active: 0, deadLetters: 0 })
    await other.close({ graceMs: 0 })
  })

  it('are not dropped by their ids when they wait again', async () => {
    const { queue, id } = await setUp(1)
    await queue.redrive('all')
    await queue.drain()
    expect([await queue.drop([id]), await queue.drop('all')]).toEqual([0, 0])
    expect((await queue.counts()).waiting).toBe(1)
  })

  it('are dropped by the hundred', async () => {
    const { queue, ids } = await setUp(501)
    expect(await queue.drop(ids.slice(0, 1))).toBe(1)
    expect(await queue.drop('all')).toBe(500)
    expect((await queue.counts()).deadLetters).toBe(0)
  })

  it('leave nothing behind when they are dropped, and their ids are new', async () => {
    const { queue, engine, ids } = await setUp(2)
    const [one = '', other = ''] = ids
    await (await engine.getJob(one))?.log('by hand')
    // BullMQ stores more beside a job of a flow.
    const keyOf = (part: string) => engine.toKey(`${one}:${part}`)
    for (const part of ['processed', 'failed']) await redis.hset(keyOf(part), 'bull:others:1', '1')
    await redis.sadd(keyOf('dependencies'), 'bull:others:1')
    await redis.zadd(keyOf('unsuccessful'), 1, 'bull:others:1')
    expect([await queue.drop([one]), await queue.drop('all')]).toEqual([1, 1])
    for (const id of ids) expect(await redis.keys(`*${id}*`)).toEqual([])
    await queue.push([one, other].map((id) => ({ id, body: Buffer.from('body') })))
    await queue.drain()
    expect((await queue.counts()).waiting).toBe(2)
  })

  it('keep their retry state without a reason, until they are redriven', async () => {
    const name = randomUUID()
    const queue = bullmqQueue({ name, connection, pollMs: 10 })
    open.push({ queue, engine: new Engine(name, { connection: redis }) })
    const states: unknown[] = []
    queue.work(
      async ({ retryState }) => {
        states.push(retryState)
        return { deadLetter: '', retryState: Buffer.from('kept') }
      },
      { concurrency: 1 },
    )
    await queue.push([{ id: randomUUID(), body: Buffer.from('body') }])
    await queue.drain()
    expect(await queue.deadLetters()).toMatchObject([{ reason: '', retryState: Buffer.from('kept') }])
    await queue.redrive('all')
    await queue.drain()
    expect(states).toEqual([undefined, undefined])
  })

  it('come first where their time was lost', async () => {
    const { queue, engine } = await setUp(3)
    const [, second, third] = await queue.deadLetters()
    for (const letter of [second, third]) await redis.hdel(engine.toKey(letter?.id ?? ''), 'finishedOn')
    const [first, next, last] = await queue.deadLetters()
    expect([first, next]).toMatchObject([
      { id: second?.id, failedAt: new Date(0) },
      { id: third?.id, failedAt: new Date(0) },
    ])
    expect(last?.failedAt.getTime()).toBeGreaterThan(0)
  })

  it('of one millisecond are listed in the order in which they failed, in pages too', async () => {
    const { queue, engine } = await setUp(9)
    const ids = (await queue.deadLetters()).map(({ id }) => id)
    for (const id of ids) {
      await redis.zadd(engine.toKey('failed'), 5000, id)
      await redis.hset(engine.toKey(id), 'finishedOn', 5000)
    }
    const paged: string[] = []
    for (let after: string | undefined; ; after = paged.at(-1)) {
      const page = await queue.deadLetters(after === undefined ? { limit: 4 } : { after, limit: 4 })
      if (page.length === 0) break
      paged.push(...page.map(({ id }) => id))
    }
    expect(paged).toEqual(ids)
    expect((await queue.deadLetters({ after: ids[0] ?? '', limit: 1 })).map(({ id }) => id)).toEqual([ids[1]])
  })

  it('of two milliseconds are listed in the order of their times', async () => {
    const { queue, engine } = await setUp(6)
    const ids = (await queue.deadLetters()).map(({ id }) => id)
    const times = [7000, 7000, 7000, 6000, 6000, 6000]
    for (const [index, id] of ids.entries()) {
      await redis.zadd(engine.toKey('failed'), times[index] ?? 0, id)
      await redis.hset(engine.toKey(id), 'finishedOn', times[index] ?? 0)
    }
    const expected = [...ids.slice(3), ...ids.slice(0, 3)]
    const first = await queue.deadLetters({ limit: 2 })
    const second = await queue.deadLetters({ after: expected[1] ?? '', limit: 2 })
    const third = await queue.deadLetters({ after: expected[3] ?? '', limit: 5 })
    expect([...first, ...second, ...third].map(({ id }) => id)).toEqual(expected)
  })

  it('count as due since their redrive', async () => {
    const { name, queue } = await setUp(1)
    await queue.close({ graceMs: 0 })
    const again = bullmqQueue({ name, connection })
    const before = Date.now()
    expect(await again.redrive('all')).toBe(1)
    expect((await again.counts()).oldestDueAt?.getTime()).toBeGreaterThanOrEqual(before)
    await again.close({ graceMs: 0 })
  })
})

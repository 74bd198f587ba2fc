/** What is in Redis: how much of it, what others put there, and how often it is asked. */

import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, inject, it } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { readOptions } from '../../../src/store/bullmq/bullmq-options.ts'
import { createBullmqStore } from '../../../src/store/bullmq/bullmq-store.ts'
import type { Outcome, StoredJob } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { bodiesOf, complete, jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { useRedis } from './set-up.ts'

const isOfAda = ({ body }: StoredJob) => Buffer.from(body).includes('ada')

describe('a queue on BullMQ', needs('Redis'), () => {
  const server = useRedis()
  const { setUp } = server

  it('keeps of a complete job its id, for the dedupe window from its push on', async () => {
    const { name, queue } = setUp({ dedupeWindowMs: 60_000 })
    const job = jobOf('x'.repeat(10_000))
    work(queue)
    await queue.push([job])
    await queue.drain()
    const key = `bull:${name}:de:${job.id}`
    expect(await server.redis.keys(`*${job.id}*`)).toEqual([key])
    expect(await server.redis.pttl(key)).toBeGreaterThan(50_000)
    expect(await server.redis.pttl(key)).toBeLessThanOrEqual(60_000)
    expect(await server.redis.memory('USAGE', key)).toBeLessThan(250)
  })

  it('makes dead letters of jobs that Hookline did not write, unless they are to be removed when they fail, and goes on', async () => {
    const { queue, engine } = setUp()
    const [foreign, fragile, bare, job] = [randomUUID(), randomUUID(), randomUUID(), jobOf()]
    await engine.add('foreign', { to: 'others' }, { jobId: foreign })
    await engine.add('fragile', 'text', { jobId: fragile, removeOnFail: true, attempts: 5, backoff: 1000 })
    await server.redis.lpush(engine.toKey('wait'), bare)
    const told: string[] = []
    const seen = work(queue, undefined, undefined, [], { onUnreadable: ({ id }) => void told.push(id) })
    await queue.push([job])
    await queue.drain()
    expect(seen.map(({ id }) => id)).toEqual([job.id])
    const letters = await queue.deadLetters()
    expect(told.sort()).toEqual([foreign, fragile, bare].sort())
    const found = letters.map(({ id, body }) => [id, `${Buffer.from(body)}`])
    expect(Object.fromEntries(found)).toEqual({ [foreign]: '{"to":"others"}', [bare]: '{}' })
    expect(await queue.drop('all')).toBe(2)
  })

  it('goes on beside a job whose data is damaged, and reports it without the data', async () => {
    const { queue, engine, errors } = setUp({ leaseMs: 100 })
    const damaged = randomUUID()
    await engine.add('damaged', {}, { jobId: damaged })
    await server.redis.hset(engine.toKey(damaged), 'data', '{"secret')
    const seen = work(queue)
    await until(() => errors.length > 0)
    await queue.push([jobOf()])
    await until(() => seen.length === 1)
    expect(errors[0]).toMatchObject({ code: 'queue_unavailable' })
    expect(inspect(errors, { depth: 9 })).not.toContain('secret')
  })

  it.each<[string, Outcome]>([
    ['complete', complete],
    ['a retry', { retryAt: new Date(0), retryState: Buffer.from('late') }],
    ['a dead letter', { deadLetter: 'late' }],
  ])('ignores an outcome after the lease, and claims the job again: %s', async (_what, outcome) => {
    const { queue, engine, errors } = setUp({ leaseMs: 400 })
    const seen = work(queue, async ({ id, claimCount }) => {
      if (claimCount > 1) return complete
      await until(async () => (await engine.getJob(id))?.progress !== 0) // The claim counts.
      await server.redis.del(`${engine.toKey(id)}:lock`)
      return outcome
    })
    await queue.push([jobOf()])
    await until(() => seen.length === 2)
    await queue.drain()
    expect(seen[1]).toMatchObject({ claimCount: 2, firstAt: seen[0]?.firstAt, retryState: undefined })
    expect(errors).toEqual([])
  })

  it('frees the claims of a worker that died also while it takes no more jobs itself', async () => {
    const { queue, name } = setUp({ leaseMs: 1_000 })
    const held = Promise.withResolvers<Outcome>()
    const seen = work(queue, ({ id }) => (id === busy.id ? held.promise : complete), 1)
    const [busy, lost] = [jobOf('busy'), jobOf('lost')]
    await queue.push([busy])
    await until(() => seen.length === 1)
    await queue.push([lost])
    const settings = readOptions({ name, connection: inject('redisUrl') ?? '', leaseMs: 1_000 })
    const dead = createBullmqStore(settings, systemClock)
    expect(await dead.claim(1)).toMatchObject([{ id: lost.id }])
    await dead.close()

    await until(async () => (await queue.counts()).waiting === 1, 10_000)

    expect(seen).toHaveLength(1)
    held.resolve(complete)
    await queue.drain()
    expect(bodiesOf(seen)).toEqual(['busy', 'lost'])
  })

  it('renews the leases of jobs that take long', async () => {
    const { queue, engine } = setUp({ leaseMs: 1500 })
    const held = Promise.withResolvers<Outcome>()
    const jobs = [jobOf(), jobOf()]
    const leftMs = () => Promise.all(jobs.map(({ id }) => server.redis.pttl(`${engine.toKey(id)}:lock`)))
    const seen = work(queue, () => held.promise, 10)
    await queue.push(jobs)
    await until(async () => (await leftMs()).every((ms) => ms > 0 && ms < 1200))
    await until(async () => (await leftMs()).every((ms) => ms > 1300))
    held.resolve(complete)
    await queue.drain()
    expect(seen).toHaveLength(2)
  })

  it('releases the jobs of a worker that closes in their order, before what waits', async () => {
    const { queue, another } = setUp()
    const running = work(queue, () => new Promise(() => {}), 3)
    await queue.push(['a', 'b', 'c', 'd'].map((body) => jobOf(body)))
    await until(() => running.length === 3)
    await queue.close({ graceMs: 0 })
    const next = another()
    const seen = work(next, undefined, 1)
    await next.drain()
    expect(bodiesOf(seen)).toEqual(['a', 'b', 'c', 'd'])
    expect(running).toHaveLength(3)
  })

  it('forgets the job of a worker that died, when its lease is over', async () => {
    const { queue, engine } = setUp()
    const seen = work(queue, () => new Promise(() => {}))
    const job = jobOf('ada')
    await queue.push([job])
    await until(() => seen.length === 1)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 1 })
    await server.redis.del(`${engine.toKey(job.id)}:lock`)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
    expect(await engine.getActiveCount()).toBe(0)
  })
})

/** The contract of a queue that outlives its process and is shared by several: what holds beyond {@link testQueue}. */

import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import type { ClaimedJob, Outcome, Queue } from '../../src/queues/queue.ts'
import type { TestedQueue } from './queue.ts'

const done: Outcome = { done: true }
const bytes = (text: string) => new TextEncoder().encode(text)
const text = (body: Uint8Array | undefined) => body && new TextDecoder().decode(body)
const jobOf = (body: string, more = {}) => ({ id: randomUUID(), body: bytes(body), ...more })

export function testDurableQueue(name: string, create: () => TestedQueue | Promise<TestedQueue>): void {
  const open: Queue[] = []
  const disposals: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const queue of open.splice(0)) await queue.close({ graceMs: 0 })
    for (const dispose of disposals.splice(0)) await dispose()
  })

  async function setUp() {
    const tested = await create()
    open.push(tested.queue)
    if (tested.dispose !== undefined) disposals.push(tested.dispose)
    const another = async () => {
      if (tested.another === undefined) throw new Error('a durable queue can be opened again')
      const queue = await tested.another()
      open.push(queue)
      return queue
    }
    /** Lets time pass as well, for those that look now and then what others have put in. */
    const until = async (isTrue: () => boolean) => {
      while (!isTrue()) await (tested.tick?.() ?? new Promise((resolve) => setImmediate(resolve)))
    }
    return { ...tested, another, until }
  }

  /** Works on a queue; what was handed out so far is in the list. */
  function work(queue: Queue, decide: (job: ClaimedJob) => Outcome | Promise<Outcome>, concurrency = 10) {
    const seen: ClaimedJob[] = []
    queue.work(
      async (job) => {
        seen.push(job)
        return decide(job)
      },
      { concurrency },
    )
    return seen
  }

  describe(`${name}: outlives its process`, () => {
    it('with what waits, now and later, in order', async () => {
      const { queue, another, now, advance, until } = await setUp()
      await queue.push([jobOf('later', { notBefore: now() + 5000 }), jobOf('a'), jobOf('b')])
      expect(await queue.close({ graceMs: 0 })).toEqual([])
      const next = await another()
      expect(await next.counts()).toMatchObject({ waiting: 3, active: 0, dead: 0 })
      const seen = work(next, () => done, 1)
      await until(() => seen.length === 2)
      await advance(5000)
      await until(() => seen.length === 3)
      expect(seen.map(({ body }) => text(body))).toEqual(['a', 'b', 'later'])
    })

    it('with jobs that no handler saw, since it closed while they were claimed: that is no delivery', async () => {
      const { queue, another, now, advance, until } = await setUp()
      const job = jobOf('job')
      await queue.push([job])
      for (let round = 0; round < 6; round += 1) {
        const closing = round === 0 ? queue : await another()
        const seen = work(closing, () => done)
        await Promise.resolve() // By now it claims.
        await closing.close({ graceMs: 0 })
        expect(seen).toEqual([])
      }
      await advance(1000)
      const at = now()
      const seen = work(await another(), () => done)
      await until(() => seen.length === 1)
      expect(seen).toMatchObject([{ id: job.id, deliveries: 1 }])
      expect(seen[0]?.firstAt).toBeGreaterThanOrEqual(at)
    })

    it('with count, first time and state of what is retried', async () => {
      const { queue, another, now, advance, until } = await setUp()
      const first = work(queue, () => ({ retryAt: now() + 5000, state: bytes('\u0000 kept') }))
      await queue.push([jobOf('job')])
      await queue.drain()
      expect(first).toHaveLength(1)
      await queue.close({ graceMs: 0 })
      const second = work(await another(), () => done)
      await advance(4000)
      expect(second).toEqual([])
      await advance(1000)
      await until(() => second.length === 1)
      expect(second[0]).toMatchObject({ id: first[0]?.id, deliveries: 2, firstAt: first[0]?.firstAt })
      expect(text(second[0]?.state)).toBe('\u0000 kept')
    })

    it('with the dead, for others to see, re-drive and drop', async () => {
      const { queue, another } = await setUp()
      work(queue, () => ({ dead: 'no \u0000 way', state: bytes('why') }), 1)
      await queue.push([jobOf('a'), jobOf('b')])
      await queue.drain()
      const before = await queue.dead()
      await queue.close({ graceMs: 0 })
      const next = await another()
      const dead = await next.dead()
      expect(dead).toEqual(before)
      expect(dead).toMatchObject([{ reason: 'no \u0000 way' }, {}])
      expect(await next.drop([dead[0]?.id ?? ''])).toBe(1)
      expect(await next.redrive('all')).toBe(1)
      const seen = work(next, () => done)
      await next.drain()
      expect(seen.map(({ body, deliveries }) => [text(body), deliveries])).toEqual([['b', 1]])
    })

    it('with the ids that are known', async () => {
      const { queue, another } = await setUp()
      work(queue, () => done)
      const job = jobOf('once')
      await queue.push([job])
      await queue.drain()
      await queue.close({ graceMs: 0 })
      const next = await another()
      await next.push([job])
      expect(await next.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })
  })

  describe(`${name}: shared by two`, () => {
    it('hands out what the other put in', async () => {
      const { queue, another, until } = await setUp()
      const seen = work(await another(), () => done)
      await queue.push([jobOf('a'), jobOf('b')])
      await until(() => seen.length === 2)
    })

    it('hands every job to one of them', async () => {
      const { queue, another, until } = await setUp()
      const other = await another()
      const slowly = async (): Promise<Outcome> => {
        await new Promise((resolve) => setImmediate(resolve))
        return done
      }
      const [here, there] = [work(queue, slowly), work(other, slowly)]
      const jobs = Array.from({ length: 200 }, (_, index) => jobOf(`${index}`))
      await Promise.all([queue.push(jobs.slice(0, 100)), other.push(jobs.slice(100)), queue.push(jobs.slice(50, 150))])
      await until(() => here.length + there.length >= 200)
      await Promise.all([queue.drain(), other.drain()])
      const handled = [...here, ...there].map(({ id }) => id)
      expect(handled.sort()).toEqual(jobs.map(({ id }) => id).sort())
    })

    it('takes one of many copies that are pushed at once', async () => {
      const { queue, another } = await setUp()
      const other = await another()
      const job = jobOf('copy')
      const copies = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? queue : other).push([job]))
      await Promise.all(copies)
      expect((await queue.counts()).waiting).toBe(1)
    })

    it('knows here what was done there', async () => {
      const { queue, another, tick } = await setUp()
      work(await another(), () => done)
      const job = jobOf('once')
      await queue.push([job])
      let isDone = false
      while (!isDone) {
        const { waiting, active } = await queue.counts()
        isDone = waiting + active === 0
        await tick?.()
      }
      await queue.push([job])
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
    })

    it('hands out elsewhere, and soon, what still runs when one closes; what that says later changes nothing', async () => {
      const { queue, another, until } = await setUp()
      const deaf = Promise.withResolvers<Outcome>()
      const first = work(queue, () => deaf.promise)
      await queue.push([jobOf('deaf')])
      await until(() => first.length === 1)
      await queue.close({ graceMs: 0 })
      const other = await another()
      const held = Promise.withResolvers<Outcome>()
      const second = work(other, () => held.promise)
      await until(() => second.length === 1)
      expect(second[0]).toMatchObject({ id: first[0]?.id, deliveries: 2 })
      deaf.resolve({ dead: 'too late' })
      await new Promise((resolve) => setImmediate(resolve))
      expect(await other.counts()).toMatchObject({ active: 1, dead: 0 })
      held.resolve(done)
      await other.drain()
      expect(await other.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })
  })
}

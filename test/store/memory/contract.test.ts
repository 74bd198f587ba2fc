import { describe, expect, it } from 'vitest'
import { type MemoryQueueOptions, memoryQueue } from '../../../src/queues-memory.ts'
import type { ClaimedJob, Job, Outcome } from '../../../src/store/queue-types.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { testQueue } from '../../contracts/queue.ts'
import { testedMemoryQueue } from '../../support/memory.ts'
import { type Decide, complete as done, jobOf as jobWith, work } from '../../support/queues.ts'

testQueue('memory', () => testedMemoryQueue(), { isDurable: false })

const jobOf = (size = 1, more: Partial<Job> = {}): Job => jobWith('', { body: new Uint8Array(size), ...more })
const full = { code: 'queue_full', status: 503 }
const idsOf = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id)

function setUp(options: MemoryQueueOptions = {}) {
  const clock = manualClock()
  const queue = memoryQueue({ clock, ...options })
  const seen: ClaimedJob[] = []
  return { clock, queue, seen, work: (decide: Decide, concurrency?: number) => work(queue, decide, concurrency, seen) }
}

describe('the bounds of a queue in memory', () => {
  it('maxBytes: of bodies and states, free again when a job is done', async () => {
    const { queue, clock, work } = setUp({ name: 'orders', maxBytes: 100 })
    const retryState = new Uint8Array(20)
    work((job) => (job.claimCount < 3 ? { retryAt: new Date(clock.now() + 1000), retryState } : done))
    await expect(queue.push([jobOf(101)])).rejects.toThrow(/orders.*maxBytes allows 100\./)
    const job = jobOf(60)
    await queue.push([job])
    await queue.push([jobOf(40, { notBefore: new Date(clock.now() + 60_000) })])
    await expect(queue.push([jobOf(1)])).rejects.toMatchObject(full)
    await queue.drain() // The retryState takes it over the bound: what was accepted is not refused.
    await queue.push([job]) // A copy needs no room.
    await clock.advance(1000)
    await queue.drain()
    await expect(queue.push([jobOf(0)])).rejects.toMatchObject(full)
    await clock.advance(1000)
    await queue.drain()
    await expect(queue.push([jobOf(61)])).rejects.toMatchObject(full)
    await queue.push([jobOf(60)])
  })

  it('are 100 000 jobs, 256 MiB and 10 000 dead letters by default; the longest dead is forgotten', async () => {
    const { queue, work } = setUp()
    const jobsOf = (length: number) => Array.from({ length }, () => jobOf(0))
    await expect(queue.push(jobsOf(100_001))).rejects.toThrow(/memory.*maxJobs allows 100000\./)
    await expect(queue.push([jobOf(2 ** 28 + 1)])).rejects.toThrow(/maxBytes allows 268435456\./)
    work(() => ({ deadLetter: 'no' }))
    const jobs = jobsOf(10_001)
    await queue.push(jobs)
    await queue.drain()
    expect(idsOf(await queue.deadLetters({ limit: 20_000 }))).toEqual(idsOf(jobs.slice(1)))
    expect(await queue.push(jobs.slice(0, 1))).toEqual([]) // Its id is forgotten, too.
  })

  it('maxBytes: the dead make way, the longest dead first, and only as many as must', async () => {
    const { queue, clock, work } = setUp({ maxBytes: 100 })
    work((job) => (job.body.length < 50 ? { deadLetter: 'no', retryState: new Uint8Array(10) } : done))
    const jobs = [jobOf(20), jobOf(20), jobOf(30)]
    await queue.push(jobs)
    await queue.drain()
    const later = { notBefore: new Date(clock.now() + 1000) }
    await queue.push([jobOf(60, later)])
    expect((await queue.deadLetters()).map(({ id }) => id)).toEqual([jobs[2]?.id])
    await expect(queue.push([jobOf(41)])).rejects.toMatchObject(full)
    expect((await queue.counts()).deadLetters).toBe(1)
    await queue.push([jobOf(40, later)])
    expect(await queue.counts()).toMatchObject({ waiting: 2, active: 0, deadLetters: 0 })
  })

  it('maxBytes: the log makes way, before the dead', async () => {
    const { queue, clock, work } = setUp({ maxBytes: 100 })
    work((job) => (job.body.length < 50 ? { complete: true, log: new Uint8Array(10) } : { deadLetter: 'no' }))
    const jobs = [jobOf(20), jobOf(20), jobOf(50)]
    await queue.push(jobs)
    await queue.drain()
    await queue.push([jobOf(40, { notBefore: new Date(clock.now() + 1000) })])
    expect(await queue.log?.list()).toEqual([])
    expect((await queue.deadLetters()).length).toBe(1)
  })

  it('as many known ids as maxJobs, the latest', async () => {
    const { queue, seen, work } = setUp({ maxJobs: 2 })
    work(() => done)
    const jobs = [jobOf(), jobOf(), jobOf()]
    for (const job of [...jobs, ...jobs.slice(1), ...jobs.slice(0, 1)]) {
      await queue.push([job])
      await queue.drain()
    }
    expect(seen.map(({ id }) => id)).toEqual([...jobs, jobs[0]].map((job) => job?.id))
  })
})

it('a small body that stays keeps no others in memory', async () => {
  const { clock, queue, work } = setUp()
  const outcomes: Outcome[] = [
    { complete: true, log: Buffer.from('a') },
    { deadLetter: 'no' },
    { retryAt: new Date(8e15) },
  ]
  work(() => outcomes.shift() ?? done, 1)
  await queue.push(['a', 'b', 'c'].map((body) => jobWith(body)))
  await clock.advance(0)
  const kept = [...((await queue.log?.list()) ?? []), ...(await queue.deadLetters()), ...(await queue.close())]
  expect(kept.map(({ body }) => body.buffer.byteLength)).toEqual([1, 1, 1])
})

describe('the time of a queue in memory', () => {
  it('is one timer, for the earliest, and none when nothing waits or nobody works', async () => {
    const { clock, queue, work } = setUp()
    const at = (ms: number) => jobOf(1, { notBefore: new Date(clock.now() + ms) })
    await queue.push([at(3000)])
    await clock.advance(0)
    expect(clock.timers).toBe(0)
    work(() => done)
    await queue.push([at(1000), at(2000)])
    await clock.advance(0)
    expect(clock.timers).toBe(1)
    await clock.advance(1000)
    expect([clock.timers, (await queue.counts()).waiting]).toEqual([1, 2])
    await clock.advance(2000)
    expect([clock.timers, (await queue.counts()).waiting]).toEqual([0, 0])
  })

  it('retries a handler that keeps failing every minute at last', async () => {
    const { clock, queue, seen, work } = setUp()
    work(() => Promise.reject(new Error('no')))
    await queue.push([jobOf()])
    await clock.advance(0)
    for (const [retries, seconds] of [1, 2, 4, 8, 16, 32, 60, 60, 60].entries()) {
      await clock.advance(seconds * 1000 - 1)
      expect(seen).toHaveLength(1 + retries)
      await clock.advance(1)
    }
    expect(seen.at(-1)?.claimCount).toBe(10)
  })
})

describe('what a queue in memory returns when it is closed', () => {
  it('has no time until which it should wait where that is over, and the body that was given', async () => {
    const { clock, queue } = setUp()
    const { id, body } = jobOf()
    await queue.push([{ id, body, notBefore: new Date(clock.now() - 1000) }])
    const [left] = await queue.close({ graceMs: 1000 })
    expect(left).toEqual({ id, body })
    expect(left?.body).toBe(body)
  })

  it('has what fails during the grace, with the time of its retry, and does not wait for it', async () => {
    const { queue, work, clock } = setUp()
    const held = Promise.withResolvers<Outcome>()
    work(() => held.promise)
    const job = jobOf()
    await queue.push([job])
    await clock.advance(0)
    const close = queue.close({ graceMs: 60_000 })
    held.reject(new Error('no'))
    expect(await close).toEqual([{ ...job, notBefore: new Date(clock.now() + 1000) }])
  })
})

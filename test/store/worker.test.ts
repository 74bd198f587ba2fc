/** When a worker claims, what it does with late claims and failing stores, and how it ends. */

import { describe, expect, it, vi } from 'vitest'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { ClaimedJob, Job, Outcome, Room } from '../../src/store/queue-types.ts'
import { QueueWorker } from '../../src/store/worker.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { complete, type Decide, jobOf } from '../support/queues.ts'
import { throwing } from '../support/throwing.ts'
import { until } from '../support/until.ts'
import { type Manner, watchStore } from './stores.ts'

const never = () => new Promise<Outcome>(() => {})
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
const jobsOf = (length: number) => Array.from({ length }, () => jobOf())

interface Setup extends Manner {
  readonly pollMs?: number
  readonly change?: (store: QueueStore) => Partial<QueueStore>
}

function setUp({ pollMs, change = () => ({}), ...manner }: Setup = {}) {
  const clock = manualClock()
  const { setTimeout } = clock
  let overdue: (() => void)[] | undefined // While the event loop is blocked.
  Object.assign(clock, {
    setTimeout: (callback: () => void, ms: number) =>
      setTimeout(() => (overdue === undefined ? callback() : void overdue.push(callback)), ms),
  })
  const watched = watchStore(clock, manner)
  const errors: unknown[] = []
  const store = { ...watched.store, ...change(watched.store) }
  const worker = new QueueWorker(store, { name: 'orders', clock, pollMs, onError: (error) => errors.push(error) })
  const seen: ClaimedJob[] = []
  return {
    ...{ clock, watched, worker, errors, seen },
    counts: () => watched.store.counts(),
    /** Blocks the event loop: the timers of that time fire when it is over. */
    async block(ms: number) {
      overdue = []
      await clock.advance(ms)
      const callbacks = overdue
      overdue = undefined
      for (const callback of callbacks) callback()
      await clock.advance(0)
    },
    async push(...jobs: Job[]) {
      await watched.store.push(jobs)
      worker.wake()
    },
    work(decide: Decide = () => complete, concurrency = 10, room?: Room) {
      const handle = async (job: ClaimedJob, signal: AbortSignal) => {
        seen.push(job)
        return decide(job, signal)
      }
      worker.start(handle, { concurrency, ...(room && { room }) })
    },
    drain() {
      const over = vi.fn()
      return { over, end: worker.drain().then(over) }
    },
  }
}

/** A store whose claims are on their way until `open` is called; `asked` resolves when there is one. */
function setUpGated(change: Partial<QueueStore> = {}) {
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const gated = (store: QueueStore): Partial<QueueStore> => ({
    async claim(limit) {
      const claims = await store.claim(limit)
      asked.resolve()
      await answered.promise
      return claims
    },
    ...change,
  })
  return { ...setUp({ change: gated }), asked: asked.promise, open: answered.resolve }
}

it('a store whose calls take effect in their order is asked for more when handlers have ended, for twice as many as are handled at a time at most', async () => {
  const recorded = Promise.withResolvers<void>()
  const change = (store: QueueStore): Partial<QueueStore> => ({
    isOrdered: true,
    finish(claim, outcome) {
      void store.finish(claim, outcome)
      return recorded.promise
    },
  })
  const { watched, worker, push, work, seen } = setUp({ change })
  await push(...jobsOf(10))
  work(() => complete, 3)
  await until(() => seen.length >= 6)
  await nextTurn()

  expect([seen.length, watched.claims.slice(0, 2)]).toEqual([6, [3, 3]])

  recorded.resolve()
  await worker.drain()
  expect(seen).toHaveLength(10)
})

describe('a store that claims the next job in the step that completes one', () => {
  /** `answered`: until then, what it claims is on its way. */
  function setUpNext(answered?: Promise<void>) {
    const next = vi.fn<Required<QueueStore>['finishAndClaim']>()
    const change = (store: QueueStore): Partial<QueueStore> => ({
      finishAndClaim: next.mockImplementation(async (claim, outcome) => {
        await store.finish(claim, outcome)
        const claims = await store.claim(1)
        await answered
        return claims
      }),
    })
    return { next, ...setUp({ change }) }
  }

  it('is not asked for others while that fills it', async () => {
    const { next, watched, worker, push, work, seen } = setUpNext()
    await push(...jobsOf(10))
    work(() => complete, 2)
    await worker.drain()
    expect([seen.length, next.mock.calls.length]).toEqual([10, 10])
    expect(watched.claims).toEqual([2, ...Array(10).fill(1), 2])
  })

  it('is told of the outcome alone after it failed to do both', async () => {
    const { next, clock, watched, push, work, errors } = setUpNext()
    next.mockRejectedValueOnce(new Error('away'))
    await push(...jobsOf(2))
    work(() => complete, 1)
    await clock.advance(1_000)
    expect(errors).toMatchObject([{ message: 'away' }])
    expect(watched.outcomes).toEqual([complete, complete])
  })

  it('gets back, unhandled, what was on its way at a pause', async () => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const { next, clock, watched, worker, push, work, seen } = setUpNext(opened)
    const jobs = jobsOf(2)
    await push(...jobs)
    work(() => complete, 1)
    await until(() => next.mock.calls.length === 1)

    void worker.pause()
    open()
    await clock.advance(0)
    expect([seen.length, watched.released]).toEqual([1, [{ id: jobs[1]?.id, wereHandled: false }]])

    worker.resume()
    await worker.drain()
    expect(seen.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
  })
})

describe('claiming', () => {
  it('polls for the jobs of other processes, with a handler only', async () => {
    const { clock, watched, worker, work, seen } = setUp({ pollMs: 200 })
    const pushElsewhere = (more: Partial<Job> = {}) => watched.store.push([jobOf('job', more)])
    await worker.drain()
    expect(clock.timers).toBe(0)

    work()
    await clock.advance(0)
    await pushElsewhere()
    await clock.advance(199)
    expect(seen).toHaveLength(0)
    await clock.advance(1)
    expect(seen).toHaveLength(1)

    await pushElsewhere({ notBefore: new Date(clock.now() + 50) })
    await clock.advance(200)
    expect(seen).toHaveLength(2)
    await worker.close(0)
    expect(clock.timers).toBe(0)
  })

  it('claims when there is room again, also when that came while it looked', async () => {
    const { clock, watched, push, work, seen } = setUp()
    const rooms = [0, 0]
    await push(jobOf())
    work(undefined, 1, { count: () => rooms.shift() ?? 5, nextAt: () => new Date(clock.now()) })
    await clock.advance(0)
    await clock.advance(0)
    expect([seen.length, new Set(watched.claims)]).toEqual([1, new Set([1])]) // No more than the concurrency.
  })
})

describe('a pause', () => {
  it('handles claims that it cannot release: no other process would get them', async () => {
    const release = () => Promise.reject(new Error('away'))
    const { worker, errors, push, work, seen, asked, open } = setUpGated({ release })
    await push(jobOf())
    work(never)
    await asked

    void worker.pause()
    open()

    await until(() => seen.length === 1)
    await worker.close(0)
    expect(errors).toMatchObject([{ message: 'away' }, { message: 'away' }])
  })
})

describe('drain', () => {
  it('is over when another process has handled the job', async () => {
    const { clock, watched, push, drain } = setUp({ pollMs: 100 })
    await push(jobOf())
    const { over, end } = drain()
    await clock.advance(1000)
    expect(over).not.toHaveBeenCalled()
    for (const claim of await watched.store.claim(1)) await watched.store.finish(claim, complete)
    await clock.advance(100)
    await end
  })

  it('does not take a store that fails for an empty one', async () => {
    const { clock, watched, drain } = setUp()
    watched.isAway = true
    const { over, end } = drain()
    await clock.advance(2000)
    expect(over).not.toHaveBeenCalled()
    watched.isAway = false
    await clock.advance(30_000)
    await end
  })
})

describe.each([false, true])('a store that fails; slow: %s', (isSlow) => {
  it('is asked again by itself: after 500 ms, then twice as long each time, 30 s at most', async () => {
    const { clock, watched, worker, push, errors, work, counts } = setUp({ isSlow })
    await push(jobOf())
    watched.isAway = true
    work()
    await clock.advance(0)
    expect(errors).toHaveLength(1)
    for (const ms of [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      const before = errors.length
      await clock.advance(ms - 1)
      expect(errors).toHaveLength(before)
      await clock.advance(1)
      expect(errors).toHaveLength(before + 1)
    }

    watched.isAway = false
    await clock.advance(30_000)
    expect(await counts()).toMatchObject({ waiting: 0, active: 0 })

    const before = errors.length
    watched.isAway = true
    worker.wake()
    await clock.advance(500)
    expect(errors).toHaveLength(before + 2) // From 500 ms on again.
  })

  it('is given the outcome again until it takes it, while other jobs go on', async () => {
    const { clock, watched, worker, push, errors, work, seen, counts } = setUp({ isSlow })
    work(() => {
      watched.isAway = seen.length === 1
      return complete
    })
    await push(jobOf())
    await clock.advance(1000)
    expect(errors.length).toBeGreaterThan(1)

    watched.isAway = false
    expect(await counts()).toMatchObject({ active: 1 })
    await push(jobOf())
    await clock.advance(2000)

    expect([seen.length, await counts()]).toMatchObject([2, { waiting: 0, active: 0 }])
    await worker.drain()
  })

  it('is given an outcome once more when the queue closes, and the job is released; then it is left alone', async () => {
    const finish = vi.fn(throwing('away'))
    const { clock, watched, worker, push, errors, work } = setUp({ isSlow, change: () => ({ finish }) })
    const [job, running] = [jobOf(), jobOf()]
    await push(job, running)
    work(({ id }) => (id === job.id ? complete : never()))
    await clock.advance(500)
    expect(finish).toHaveBeenCalledTimes(2)

    await worker.close(0)
    await clock.advance(10 * 60_000)

    expect([finish.mock.calls.length, errors.length, clock.timers]).toEqual([3, 3, 0])
    expect(watched.released).toEqual([job, running].map(({ id }) => ({ id, wereHandled: true })))
  })
})

it('close gives handlers that obey the signal a turn to end', async () => {
  const { watched, worker, push, work } = setUp()
  const end = (resolve: (outcome: Outcome) => void) => () => process.nextTick(resolve, complete)
  work((_job, signal) => new Promise((resolve) => signal.addEventListener('abort', end(resolve))))
  await push(jobOf())
  await nextTurn()
  await worker.close(0)
  expect([watched.outcomes, watched.released]).toEqual([[complete], []])
})

it('close waits for a claim on its way, and releases it unhandled', async () => {
  const { clock, watched, worker, push, work, seen, asked, open } = setUpGated()
  const due = jobOf()
  await push(due, jobOf('later', { notBefore: new Date(clock.now() + 1000) }))
  work()
  await asked

  const closed = vi.fn()
  const close = worker.close(0).then(closed)
  await clock.advance(0)
  expect(closed).not.toHaveBeenCalled()
  open()
  await close

  expect(watched.released).toEqual([{ id: due.id, wereHandled: false }])
  expect([seen, clock.timers]).toEqual([[], 0])
})

describe('leases', () => {
  function setUpLeases(renew: () => void | Promise<void> = () => {}, renewMs?: number) {
    const renewals: string[][] = []
    const change = (): Partial<QueueStore> => ({
      ...(renewMs !== undefined && { renewMs }),
      async renew(claims) {
        renewals.push(claims.map(({ id }) => id))
        await renew()
      },
    })
    return { ...setUp({ leaseMs: 3000, change }), renewals }
  }

  it('are renewed three times a lease, all together, while their jobs run; without jobs no timer is set', async () => {
    const { clock, push, work, renewals } = setUpLeases()
    const [long, short] = [Promise.withResolvers<Outcome>(), Promise.withResolvers<Outcome>()]
    const jobs = jobsOf(2)
    work(({ id }) => (id === jobs[0]?.id ? long.promise : short.promise))
    await clock.advance(0)
    expect(clock.timers).toBe(0)
    await push(...jobs.slice(0, 1))
    await clock.advance(500)
    await push(...jobs.slice(1)) // Puts off no renewal.
    await clock.advance(499)
    expect(renewals).toEqual([])
    await clock.advance(1)
    expect(renewals).toEqual([jobs.map(({ id }) => id)])
    short.resolve(complete)
    await clock.advance(2000)
    expect(renewals.slice(1)).toEqual([[jobs[0]?.id], [jobs[0]?.id]])

    long.resolve(complete)
    await clock.advance(10_000)
    expect([renewals.length, clock.timers]).toEqual([3, 0])
  })

  it('are renewed until the outcome is recorded', async () => {
    const { clock, watched, push, work, renewals } = setUpLeases()
    work(() => {
      watched.isAway = true
      return complete
    })
    await push(jobOf())
    await clock.advance(2000) // The next attempt is 3500 ms after the first.
    expect(renewals).toHaveLength(2)

    watched.isAway = false
    await clock.advance(10_000)
    expect([renewals.length, clock.timers]).toEqual([3, 0])
  })

  it('whose renewal fails are reported, and renewed the next time, as often as the store says', async () => {
    const { clock, push, work, renewals, errors } = setUpLeases(() => Promise.reject(new Error('away')), 250)
    work(never)
    await push(jobOf())
    await clock.advance(500)
    expect(renewals).toHaveLength(2)
    expect(errors).toMatchObject([{ message: 'away' }, { message: 'away' }])
  })

  it('are not renewed again while a renewal is on its way, nor after close, which waits for it', async () => {
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const { clock, watched, worker, push, work, renewals } = setUpLeases(() => opened)
    work(never)
    await push(jobOf())
    await clock.advance(5000)
    expect(renewals).toHaveLength(1)

    const close = worker.close(0)
    await clock.advance(0)
    expect(watched.released).toEqual([])
    open()
    await close

    await clock.advance(10_000)
    expect([watched.released.length, renewals.length, clock.timers]).toEqual([1, 1, 0])
  })

  it('that were lost are remembered of the last thousand jobs', async () => {
    const { clock, push, work, block, seen } = setUpLeases()
    const held = Promise.withResolvers<Outcome>()
    work(() => (seen.length > 1_001 ? complete : held.promise), 1_001)
    await push(...jobsOf(1_001))
    await clock.advance(500)
    await block(2500)
    held.resolve({ retryAt: new Date(clock.now()) })
    await clock.advance(0)
    expect(seen.slice(1_001).map(({ blockedMs }) => blockedMs)).toEqual([undefined, ...Array(1_000).fill(2000)])
  })

  it.each([
    ['lost, reported, and noted at the job that is claimed here again', 2500, [undefined, 2000]],
    ['renewed in time after all', 2499, [undefined, undefined]],
  ])('that a blocked event loop does not renew are %s: after %d ms', async (_what, ms, expected) => {
    const { clock, push, work, block, seen, errors } = setUpLeases()
    const held = Promise.withResolvers<Outcome>()
    work(() => (seen.length === 1 ? held.promise : complete))
    await push(jobOf())
    await clock.advance(500)

    await block(ms)
    held.resolve({ retryAt: new Date(clock.now()) }) // As when another process releases it.
    await clock.advance(0)

    expect(seen.map(({ blockedMs }) => blockedMs)).toEqual(expected)
    expect(errors).toMatchObject(expected[1] === undefined ? [] : [{ code: 'lease_lapsed', status: 503 }])
    expect(String(errors)).toMatch(expected[1] === undefined ? /^$/ : /orders.*2\.0 s.*leaseMs/)
  })
})

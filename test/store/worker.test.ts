/** When a worker claims, what it does with late claims and failing stores, and how it ends. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { ClaimedJob, Job, Outcome, Room } from '../../src/store/queue-types.ts'
import { QueueWorker } from '../../src/store/worker.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { until } from '../support/until.ts'
import { type Manner, watchStore } from './stores.ts'

const complete: Outcome = { complete: true }
const never = () => new Promise<Outcome>(() => {})
const jobOf = (more: Partial<Job> = {}): Job => ({ id: randomUUID(), body: new Uint8Array(1), ...more })

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
    clock,
    watched,
    worker,
    errors,
    seen,
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
    work(
      decide: (job: ClaimedJob, signal: AbortSignal) => Outcome | Promise<Outcome> = () => complete,
      concurrency = 10,
      room?: Room,
    ) {
      const handle = async (job: ClaimedJob, signal: AbortSignal) => {
        seen.push(job)
        return decide(job, signal)
      }
      worker.start(handle, { concurrency, ...(room && { room }) })
    },
  }
}

function watch(promise: Promise<void>) {
  const watched = { promise, isOver: false }
  void promise.then(() => Object.assign(watched, { isOver: true }))
  return watched
}

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: () => resolve() }
}

describe('a store whose calls take effect in their order', () => {
  const ordered = (recorded: Promise<void>) => ({
    change: (store: QueueStore): Partial<QueueStore> => ({
      isOrdered: true,
      finish(claim, outcome) {
        void store.finish(claim, outcome)
        return recorded
      },
    }),
  })

  it('is asked for more when handlers have ended, together with their outcomes', async () => {
    const recorded = Promise.withResolvers<void>()
    const { watched, worker, push, work, seen } = setUp(ordered(recorded.promise))
    await push(...Array.from({ length: 4 }, () => jobOf()))
    work(() => complete, 3)
    await until(() => seen.length === 4)
    expect(watched.claims.slice(0, 2)).toEqual([3, 3])
    recorded.resolve()
    await worker.drain()
  })

  it('is asked for twice as many as are handled at a time at most, while outcomes are not recorded', async () => {
    const recorded = Promise.withResolvers<void>()
    const { worker, push, work, seen } = setUp(ordered(recorded.promise))
    await push(...Array.from({ length: 10 }, () => jobOf()))
    work(() => complete, 3)
    await until(() => seen.length >= 6)
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen).toHaveLength(6)
    recorded.resolve()
    await until(() => seen.length === 10)
    await worker.drain()
  })

  it('is left alone until outcomes are recorded, however much room the handler has', async () => {
    const recorded = Promise.withResolvers<void>()
    const { clock, worker, push, work, seen } = setUp(ordered(recorded.promise))
    const nextAt = vi.fn(() => new Date(clock.now()))
    await push(...Array.from({ length: 3 }, () => jobOf()))
    work(() => complete, 1, { count: () => 1, nextAt })
    await until(() => seen.length === 2)
    await clock.advance(0)
    expect(nextAt).not.toHaveBeenCalled()
    recorded.resolve()
    await until(() => seen.length === 3)
    await worker.drain()
  })

  it('leaves the event loop to others now and then, also when it answers without a promise', async () => {
    const { worker, push, work, seen } = setUp({ change: () => ({ isOrdered: true }) })
    await push(...Array.from({ length: 2_000 }, () => jobOf()))
    work(() => complete, 100)
    await new Promise((resolve) => setImmediate(resolve))
    expect(seen.length).toBeGreaterThan(0)
    expect(seen.length).toBeLessThan(1_000)
    await worker.drain()
  })
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
    await push(...Array.from({ length: 10 }, () => jobOf()))
    work(() => complete, 2)
    await worker.drain()
    expect([seen.length, next.mock.calls.length]).toEqual([10, 10])
    expect(watched.claims).toEqual([2, ...Array(10).fill(1), 2])
  })

  it('is only told of outcomes when there is other room, or another outcome', async () => {
    const { next, worker, push, work, seen } = setUpNext()
    await push(jobOf(), jobOf())
    const isFirst = () => seen.length === 1
    work(() => (isFirst() ? { deadLetter: 'no' } : complete), 1, { count: () => 1, nextAt: () => undefined })
    await worker.drain()
    expect([seen.length, next.mock.calls.length]).toEqual([2, 0])
  })

  it('gets back, unhandled, what was on its way at a pause', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { next, clock, watched, worker, push, work, seen } = setUpNext(promise)
    const jobs = [jobOf(), jobOf()]
    await push(...jobs)
    work(() => complete, 1)
    await until(() => next.mock.calls.length === 1)
    worker.setPaused(true)
    resolve()
    await clock.advance(0)
    expect([seen.length, watched.released]).toEqual([1, [{ id: jobs[1]?.id, wereHandled: false }]])
    worker.setPaused(false)
    await worker.drain()
    expect(seen.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
  })
})

describe('claiming', () => {
  it.each([false, true])('asks for many jobs when many end together; slow store: %s', async (isSlow) => {
    const { watched, worker, push, work } = setUp({ isSlow })
    await push(...Array.from({ length: 100 }, () => jobOf()))
    work(() => complete, 50)
    await worker.drain()
    expect(watched.claims.length).toBeLessThanOrEqual(8)
    expect(watched.claims.slice(0, 2)).toEqual([50, 50])
  })

  it('polls for the jobs of other processes, with a handler only', async () => {
    const { clock, watched, worker, work, seen } = setUp({ pollMs: 200 })
    const pushElsewhere = (job: Job) => watched.store.push([job])
    await worker.drain()
    expect(clock.timers).toBe(0)
    work()
    await clock.advance(0)
    await pushElsewhere(jobOf())
    await clock.advance(199)
    expect(seen).toHaveLength(0)
    await clock.advance(1)
    expect(seen).toHaveLength(1)
    await pushElsewhere(jobOf({ notBefore: new Date(clock.now() + 50) }))
    await clock.advance(200)
    expect(seen).toHaveLength(2)
    await worker.close(0)
    expect(clock.timers).toBe(0)
  })

  it('claims when there is room again, also when that came while it looked', async () => {
    const { clock, push, work, seen } = setUp()
    const rooms = [0, 0]
    const room = { count: () => rooms.shift() ?? 1, nextAt: () => new Date(clock.now()) }
    await push(jobOf())
    work(undefined, 1, room)
    await clock.advance(0)
    await clock.advance(0)
    expect(seen).toHaveLength(1)
  })

  it('takes promises of any make', async () => {
    const { worker, push, work, seen } = setUp({
      change: (store) => ({
        // biome-ignore lint/suspicious/noThenProperty: a promise of another make
        claim: (limit) => ({ then: (...args: []) => Promise.resolve(store.claim(limit)).then(...args) }) as never,
      }),
    })
    await push(jobOf())
    work()
    await worker.drain()
    expect(seen).toHaveLength(1)
  })
})

describe('a pause', () => {
  function setUpGated(manner: Setup = {}) {
    const gated = gate()
    let isAsked = false
    const parts = setUp({
      ...manner,
      change: (store) => ({
        async claim(limit) {
          const claims = await store.claim(limit)
          isAsked = true
          await gated.opened
          return claims
        },
        ...manner.change?.(store),
      }),
    })
    return { ...parts, open: gated.open, asked: () => until(() => isAsked) }
  }

  it('releases the claims that were on their way, unhandled, and claims them after resume', async () => {
    const { clock, worker, watched, push, work, seen, open, asked } = setUpGated()
    const job = jobOf()
    await push(job)
    work()
    await asked()
    worker.setPaused(true)
    open()
    await clock.advance(1000)
    expect([seen, watched.released]).toEqual([[], [{ id: job.id, wereHandled: false }]])
    worker.setPaused(false)
    await worker.drain()
    expect(seen.map(({ id }) => id)).toEqual([job.id])
  })

  it('handles claims that it cannot release: no other process would get them', async () => {
    const { worker, errors, push, work, seen, open, asked } = setUpGated({
      change: () => ({ release: () => Promise.reject(new Error('away')) }),
    })
    await push(jobOf())
    work()
    await asked()
    worker.setPaused(true)
    open()
    await until(() => seen.length === 1)
    expect(errors).toMatchObject([{ message: 'away' }])
  })
})

describe('drain', () => {
  it('is not over while a job came due that very moment', async () => {
    const { clock, worker, push, work } = setUp({ change: (store) => ({ nextDueAt: lateOnce(() => clock, store) }) })
    await push(jobOf({ notBefore: new Date(clock.now() + 10) }))
    const drain = watch(worker.drain())
    await clock.advance(0)
    await clock.advance(0)
    expect(drain.isOver).toBe(false)
    work()
    await drain.promise
  })

  it('is over when another process has handled the job', async () => {
    const { clock, worker, watched, push } = setUp({ pollMs: 100 })
    await push(jobOf())
    const drain = watch(worker.drain())
    await clock.advance(1000)
    expect(drain.isOver).toBe(false)
    for (const claim of await watched.store.claim(1)) await watched.store.finish(claim, complete)
    await clock.advance(100)
    await drain.promise
  })

  it('does not take a store that fails for an empty one', async () => {
    const { clock, watched, worker } = setUp()
    watched.isAway = true
    const drain = watch(worker.drain())
    await clock.advance(2000)
    expect(drain.isOver).toBe(false)
    watched.isAway = false
    await clock.advance(30_000)
    await drain.promise
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
    await clock.advance(0)
    expect(seen).toHaveLength(2)
    await clock.advance(2000)
    expect([seen.length, await counts()]).toMatchObject([2, { waiting: 0, active: 0 }])
    await worker.drain()
  })

  it('is given an outcome once more when the queue closes, and the job is released', async () => {
    const { clock, watched, worker, push, errors, work } = setUp({
      isSlow,
      change: () => ({
        finish() {
          watched.outcomes.push(complete)
          throw new Error('away')
        },
      }),
    })
    const job = jobOf()
    await push(job)
    work()
    await clock.advance(500)
    expect(watched.outcomes).toHaveLength(2)
    await worker.close(0)
    await clock.advance(10 * 60_000)
    expect([watched.outcomes.length, errors.length, clock.timers]).toEqual([3, 3, 0])
    expect(watched.released).toEqual([{ id: job.id, wereHandled: true }])
  })

  it('lets the queue close, without a timer left, and is not asked again', async () => {
    const { clock, watched, worker, push, errors, work, seen } = setUp({ isSlow })
    work(() => {
      if (seen.length === 1) return never()
      watched.isAway = true
      return complete
    }, 2)
    await push(jobOf(), jobOf())
    await clock.advance(600)
    const before = errors.length
    await worker.close(0)
    expect(errors.length).toBeGreaterThan(before)
    const after = watched.failures
    await clock.advance(10 * 60_000)
    expect([seen.length, clock.timers, watched.failures]).toEqual([2, 0, after])
  })
})

describe('close', () => {
  it('waits for a claim on its way, and releases it unhandled', async () => {
    const gated = gate()
    let isAsked = false
    const { clock, watched, worker, push, work, seen } = setUp({
      change: (store) => ({
        async claim(limit) {
          isAsked = true
          await gated.opened
          return store.claim(limit)
        },
      }),
    })
    const due = jobOf()
    await push(due, jobOf({ notBefore: new Date(clock.now() + 1000) }))
    work()
    await until(() => isAsked)
    const close = watch(worker.close(0))
    await clock.advance(0)
    expect(close.isOver).toBe(false)
    gated.open()
    await close.promise
    expect(watched.released).toEqual([{ id: due.id, wereHandled: false }])
    expect([seen, clock.timers]).toEqual([[], 0])
  })
})

describe('leases', () => {
  function setUpLeases(renew: (ids: string[]) => void | Promise<void> = () => {}) {
    const renewals: string[][] = []
    const parts = setUp({
      leaseMs: 3000,
      change: () => ({
        renew: async (claims) => {
          const ids = claims.map(({ id }) => id)
          renewals.push(ids)
          await renew(ids)
        },
      }),
    })
    return { ...parts, renewals }
  }

  it('are renewed three times a lease, all together, while their jobs run', async () => {
    const { clock, push, work, renewals } = setUpLeases()
    const held = Promise.withResolvers<Outcome>()
    const [long, short] = [jobOf(), jobOf()]
    work(({ id }) => (id === long.id ? never() : held.promise))
    await push(long, short)
    await clock.advance(999)
    expect(renewals).toEqual([])
    await clock.advance(1)
    expect(renewals).toEqual([[long.id, short.id]])
    held.resolve(complete)
    await clock.advance(2000)
    expect(renewals.slice(1)).toEqual([[long.id], [long.id]])
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

  it('whose renewal fails are reported, and renewed the next time', async () => {
    const { clock, push, work, renewals, errors } = setUpLeases(() => Promise.reject(new Error('away')))
    work(never)
    await push(jobOf())
    await clock.advance(2000)
    expect(renewals).toHaveLength(2)
    expect(errors).toMatchObject([{ message: 'away' }, { message: 'away' }])
  })

  it('are not renewed again while a renewal is on its way', async () => {
    const gated = gate()
    const { clock, push, work, renewals } = setUpLeases(() => gated.opened)
    work(never)
    await push(jobOf())
    await clock.advance(5000)
    expect(renewals).toHaveLength(1)
    gated.open()
    await clock.advance(1000)
    expect(renewals).toHaveLength(2)
  })

  describe('that a blocked event loop does not renew', () => {
    const blockedMsOf = (jobs: readonly ClaimedJob[]) => jobs.map((job) => job.blockedMs)

    /** A job is claimed, held for a while, blocks the event loop and is released, as by another process. */
    async function lapse(parts: ReturnType<typeof setUpLeases>, heldMs: number, ms: number) {
      const { clock, push, work, block, seen } = parts
      const held = Promise.withResolvers<Outcome>()
      work(() => (seen.length === 1 ? held.promise : complete))
      await push(jobOf())
      await clock.advance(heldMs)
      await block(ms)
      held.resolve({ retryAt: new Date(clock.now()) })
      await clock.advance(0)
    }

    it('are reported with how long it was blocked, and so is the job that is claimed here again', async () => {
      const parts = setUpLeases()
      await lapse(parts, 500, 2500)
      expect(parts.errors).toMatchObject([{ code: 'lease_lapsed', status: 503 }])
      expect((parts.errors[0] as Error).message).toBe(
        'Queue orders: leases must be renewed every 1.0 s. Got an event loop blocked for 2.0 s, leases over: 1. Move such work to a worker thread, or raise leaseMs: these jobs may be handled again.',
      )
      expect(blockedMsOf(parts.seen)).toEqual([undefined, 2000])
    })

    it('are remembered for the last thousand jobs', async () => {
      const { clock, push, work, block, seen } = setUpLeases()
      const held = Promise.withResolvers<Outcome>()
      const jobs = Array.from({ length: 1_001 }, () => jobOf())
      work(({ claimCount }) => (claimCount === 1 ? held.promise : complete), jobs.length)
      await push(...jobs)
      await clock.advance(500)
      await block(2500)
      held.resolve({ retryAt: new Date(clock.now()) })
      await clock.advance(0)
      const again = seen.slice(jobs.length)
      expect(again.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id))
      expect(blockedMsOf(again)).toEqual([undefined, ...Array(1_000).fill(2000)])
    })

    it('are renewed in time after all when it was blocked for less than is left of the lease', async () => {
      const parts = setUpLeases()
      await lapse(parts, 500, 2499)
      expect(parts.errors).toEqual([])
      expect(blockedMsOf(parts.seen)).toEqual([undefined, undefined])
    })
  })

  it('are not renewed after close, which waits for the renewal on its way', async () => {
    const gated = gate()
    const { clock, watched, worker, push, work, renewals } = setUpLeases(() => gated.opened)
    work(never)
    await push(jobOf())
    await clock.advance(1000)
    const close = worker.close(0)
    await clock.advance(0)
    expect(watched.released).toEqual([])
    gated.open()
    await close
    expect(watched.released).toHaveLength(1)
    await clock.advance(10_000)
    expect([renewals.length, clock.timers]).toEqual([1, 0])
  })
})

/** Of `nextDueAt`: time goes on while it answers, the first time. */
function lateOnce(clock: () => ReturnType<typeof manualClock>, store: QueueStore): QueueStore['nextDueAt'] {
  let hasPassed = false
  return async () => {
    const at = await store.nextDueAt()
    if (!hasPassed) await clock().advance(10)
    hasPassed = true
    return at
  }
}

import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { HooklineError } from '../../src/protocol/error.ts'
import { readClose, readIds, readJobs, readPage } from '../../src/queues/arguments.ts'
import { createLoop, type Store } from '../../src/queues/loop.ts'
import { readOptions } from '../../src/queues/memory-options.ts'
import { createMemoryStore, type MemoryStore } from '../../src/queues/memory-store.ts'
import type { Job, Queue } from '../../src/queues/queue.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { testQueue } from '../contracts/queue.ts'
import { until } from '../support/until.ts'

/** The same answers, each a few turns later, as from a database. */
function slowed(store: Store): Store {
  const later = async <T>(act: () => T | Promise<T>): Promise<T> => {
    await Promise.resolve()
    const answer = act()
    await Promise.resolve()
    return answer
  }
  return {
    release: (jobs, how) => later(() => store.release(jobs, how)),
    claim: (limit) => later(() => store.claim(limit)),
    settle: (job, outcome) => later(() => store.settle(job, outcome)),
    nextAt: () => later(() => store.nextAt()),
  }
}

/** A queue whose engine is somewhere else, and stays when the process ends. */
function remoteQueue(store: MemoryStore, clock = manualClock()): Queue {
  const loop = createLoop(slowed(store), { clock, finishesDue: false })
  let closed: Promise<readonly Job[]> | undefined
  const whileOpen = <T>(act: () => T): T => {
    if (closed !== undefined) throw new HooklineError('shutting_down', 'Closed.')
    const result = act()
    loop.wake()
    return result
  }
  return {
    push: async (jobs) => {
      const byId = readJobs(jobs)
      whileOpen(() => store.push(byId))
    },
    work: loop.work,
    drain: loop.drain,
    counts: async () => store.counts(),
    dead: async (page = {}) => {
      const { after, limit } = readPage(page)
      return store.page(after, limit)
    },
    redrive: async (ids) => {
      readIds(ids)
      return whileOpen(() => store.redrive(ids))
    },
    drop: async (ids) => store.drop(readIds(ids)),
    close: async (options) => {
      const checked = readClose(options)
      closed ??= loop.close(checked).then(() => [])
      return closed
    },
  }
}

testQueue('a store that answers later', () => {
  const clock = manualClock()
  const queue = remoteQueue(createMemoryStore(readOptions({ clock })), clock)
  const { now, advance } = clock
  return { queue, now, advance, outlivesProcess: true, knownForMs: 24 * 60 * 60_000 }
})

describe('the loop', () => {
  const ids = (count: number) => Array.from({ length: count }, () => randomUUID())
  const body = new Uint8Array(1)

  function setUp(slow: boolean) {
    const clock = manualClock()
    const store = createMemoryStore(readOptions({ clock }))
    const claims: number[] = []
    const watched: Store = {
      ...store,
      claim: (limit) => {
        claims.push(limit)
        return store.claim(limit)
      },
    }
    const loop = createLoop(slow ? slowed(watched) : watched, { clock, finishesDue: false })
    const push = (count: number) => {
      store.push(readJobs(ids(count).map((id) => ({ id, body }))))
      loop.wake()
    }
    return { clock, store, claims, loop, push }
  }

  it.each([false, true])('claims many at once when many end at once; later answers: %s', async (slow) => {
    const { claims, loop, push } = setUp(slow)
    push(100)
    loop.work(async () => ({ done: true }), { concurrency: 50 })
    await loop.drain()
    expect(claims.length).toBeLessThanOrEqual(8)
    expect(claims.slice(0, 2)).toEqual([50, 50])
  })

  it('lets everything else have its turn between many jobs', async () => {
    const { loop, push, store } = setUp(false)
    push(10_000)
    loop.work(async () => ({ done: true }), { concurrency: 10 })
    await new Promise((resolve) => setImmediate(resolve))
    expect(store.counts().waiting).toBeGreaterThan(9_000)
    await loop.drain()
    expect(store.counts().waiting).toBe(0)
  })

  it('looks again when something was put in while the store answered', async () => {
    const { clock, store } = setUp(false)
    const answers: (() => void)[] = []
    const asked: Store = {
      ...store,
      nextAt: () => {
        const nextAt = store.nextAt()
        return new Promise((resolve) => answers.push(() => resolve(nextAt)))
      },
    }
    const loop = createLoop(asked, { clock, finishesDue: false })
    let worked = 0
    const work = async () => {
      await new Promise((resolve) => setImmediate(resolve))
      worked += 1
      return { done: true } as const
    }
    loop.work(work, { concurrency: 10 })
    await until(() => answers.length === 1)
    store.push(readJobs([{ id: randomUUID(), body }]))
    loop.wake()
    const drain = loop.drain().then(() => worked)
    for (let turn = 0; turn < 5; turn += 1) {
      for (const answer of answers.splice(0)) answer()
      await clock.advance(0)
    }
    expect(await drain).toBe(1)
  })

  it('hands out what comes due while the store answers', async () => {
    const { clock, store } = setUp(false)
    const timer = vi.spyOn(clock, 'setTimeout') // Node warns of a negative delay.
    let hasPassed = false
    const slow: Store = {
      ...store,
      nextAt: async () => {
        const nextAt = store.nextAt()
        if (!hasPassed) await clock.advance(10)
        hasPassed = true
        return nextAt
      },
    }
    const loop = createLoop(slow, { clock, finishesDue: false })
    store.push(readJobs([{ id: randomUUID(), body, notBefore: clock.now() + 5 }]))
    let worked = 0
    const work = async () => {
      worked += 1
      return { done: true } as const
    }
    loop.work(work, { concurrency: 1 })
    await until(() => hasPassed)
    await clock.advance(0)
    expect(worked).toBe(1)
    expect(timer.mock.calls.map(([, ms]) => ms)).toEqual([0])
  })

  it('is not drained of what comes due that very moment', async () => {
    const { clock, store } = setUp(false)
    let hasPassed = false
    const slow: Store = {
      ...store,
      nextAt: async () => {
        const nextAt = store.nextAt()
        if (!hasPassed) await clock.advance(10)
        hasPassed = true
        return nextAt
      },
    }
    const loop = createLoop(slow, { clock, finishesDue: false })
    store.push(readJobs([{ id: randomUUID(), body, notBefore: clock.now() + 10 }]))
    let isDrained = false
    const drain = loop.drain().then(() => {
      isDrained = true
    })
    await until(() => hasPassed)
    await clock.advance(0)
    expect(isDrained).toBe(false)
    loop.work(async () => ({ done: true }), { concurrency: 1 })
    await drain
  })

  it('works on nothing that a claim brings after it was closed', async () => {
    const { clock, store } = setUp(false)
    const claim = Promise.withResolvers<void>()
    let claimed = false
    const released: unknown[] = []
    const late: Store = {
      ...store,
      release: (jobs, how) => {
        released.push(...jobs.map(({ id }) => ({ id, ...how })))
      },
      claim: async (limit) => {
        claimed = true
        await claim.promise
        return store.claim(limit)
      },
    }
    const loop = createLoop(late, { clock, finishesDue: false })
    const [due, later] = [randomUUID(), randomUUID()]
    store.push(
      readJobs([
        { id: due, body },
        { id: later, body, notBefore: clock.now() + 1000 },
      ]),
    )
    let worked = false
    loop.work(
      async () => {
        worked = true
        return { done: true }
      },
      { concurrency: 1 },
    )
    await until(() => claimed)
    const close = loop.close({ graceMs: 0 })
    await clock.advance(0)
    claim.resolve()
    await close
    expect(released).toEqual([{ id: due, wereSeen: false }])
    expect([worked, clock.timers]).toEqual([false, 0])
  })

  /** A store whose calls fail as long as it is away. */
  function setUpAway() {
    const clock = manualClock()
    const store = createMemoryStore(readOptions({ clock }))
    let isAway = false
    let calls = 0
    const fail = <Args extends unknown[], T>(act: (...args: Args) => T | Promise<T>) => {
      return async (...args: Args): Promise<T> => {
        if (!isAway) return act(...args)
        calls += 1
        throw new Error('away')
      }
    }
    const errors: unknown[] = []
    const away: Store = {
      claim: fail(store.claim),
      settle: fail(store.settle),
      nextAt: fail(store.nextAt),
      release: fail(store.release),
    }
    const loop = createLoop(away, { clock, finishesDue: false, onError: (error) => errors.push(error) })
    const push = () => {
      const id = randomUUID()
      store.push(readJobs([{ id, body }]))
      loop.wake()
      return id
    }
    const setAway = (to: boolean) => {
      isAway = to
    }
    return { clock, store, loop, push, errors, setAway, calls: () => calls }
  }

  it('goes on by itself when the store is back, and waits longer each time', async () => {
    const { clock, loop, push, errors, setAway, store } = setUpAway()
    setAway(true)
    push()
    loop.work(async () => ({ done: true }), { concurrency: 1 })
    await clock.advance(0)
    expect(errors).toHaveLength(1)
    await clock.advance(500 + 1000 + 2000)
    expect(errors).toHaveLength(4)
    await clock.advance(3 * 60_000)
    const soFar = errors.length
    expect(soFar).toBeLessThan(14)
    await clock.advance(30_000)
    expect(errors).toHaveLength(soFar + 1)
    setAway(false)
    await clock.advance(30_000)
    expect(store.counts()).toMatchObject({ waiting: 0, active: 0 })
    setAway(true)
    push()
    await clock.advance(500)
    expect(errors).toHaveLength(soFar + 3)
  })

  it('tells what became of a job when the store is back', async () => {
    const { clock, loop, push, errors, setAway, store } = setUpAway()
    let runs = 0
    loop.work(
      async () => {
        runs += 1
        setAway(true)
        return { done: true }
      },
      { concurrency: 1 },
    )
    push()
    await clock.advance(1000)
    expect(errors.length).toBeGreaterThan(1)
    expect(store.counts()).toMatchObject({ active: 1 })
    setAway(false)
    await clock.advance(2000)
    expect([runs, store.counts()]).toMatchObject([1, { waiting: 0, active: 0 }])
  })

  it('is not drained as long as nobody knows', async () => {
    const { clock, loop, setAway } = setUpAway()
    setAway(true)
    let isDrained = false
    const drain = loop.drain().then(() => {
      isDrained = true
    })
    await clock.advance(2000)
    expect(isDrained).toBe(false)
    setAway(false)
    await clock.advance(30_000)
    await drain
  })

  it('closes while the store is away, and leaves no timer behind', async () => {
    const { clock, loop, push, setAway, errors } = setUpAway()
    const deaf = Promise.withResolvers<{ done: true }>()
    let runs = 0
    loop.work(
      async () => {
        runs += 1
        if (runs === 1) return deaf.promise
        setAway(true)
        return { done: true }
      },
      { concurrency: 2 },
    )
    push()
    push()
    await clock.advance(600)
    const before = errors.length
    await loop.close({ graceMs: 0 })
    expect(errors.length).toBeGreaterThan(before)
    expect([runs, clock.timers]).toEqual([2, 0])
  })

  it('closes while a store that answers at once fails: it asks once more, and then never again', async () => {
    const { clock, store } = setUp(false)
    let settles = 0
    const failing: Store = {
      ...store,
      settle: () => {
        settles += 1
        throw new Error('away')
      },
    }
    const errors: unknown[] = []
    const loop = createLoop(failing, { clock, finishesDue: false, onError: (error) => errors.push(error) })
    store.push(readJobs([{ id: randomUUID(), body }]))
    loop.work(async () => ({ done: true }), { concurrency: 1 })
    await clock.advance(0)
    expect([settles, clock.timers]).toEqual([1, 1])
    await clock.advance(500)
    expect([settles, clock.timers]).toEqual([2, 1])
    await loop.close({ graceMs: 0 })
    await clock.advance(10 * 60_000)
    expect([settles, errors.length, clock.timers]).toEqual([3, 3, 0])
    expect(store.counts()).toMatchObject({ waiting: 0, active: 1 })
  })

  it('gives back what runs when it is closed', async () => {
    const { clock, store } = setUp(false)
    const released: unknown[] = []
    const release: Store['release'] = (jobs, how) => void released.push(...jobs.map(({ id }) => ({ id, ...how })))
    const watched: Store = { ...store, release }
    const loop = createLoop(watched, { clock, finishesDue: false })
    const [deaf, obeys] = ids(2)
    store.push(readJobs([deaf, obeys].map((id) => ({ id: id as string, body }))))
    loop.work(
      ({ id }, signal) =>
        new Promise((resolve) => {
          if (id === obeys) signal.addEventListener('abort', () => resolve({ done: true }))
        }),
      { concurrency: 2 },
    )
    await until(() => store.counts().active === 2)
    await loop.close({ graceMs: 0 })
    expect(released).toEqual([{ id: deaf, wereSeen: true }])
  })

  it('looks for the jobs of other processes now and then, while somebody works', async () => {
    const { clock, store } = setUp(false)
    const loop = createLoop(store, { clock, finishesDue: false, pollMs: 200 })
    await loop.drain()
    expect(clock.timers).toBe(0)
    let runs = 0
    loop.work(
      async () => {
        runs += 1
        return { done: true }
      },
      { concurrency: 1 },
    )
    await clock.advance(0)
    store.push(readJobs([{ id: randomUUID(), body }]))
    await clock.advance(199)
    expect(runs).toBe(0)
    await clock.advance(1)
    expect(runs).toBe(1)
    store.push(readJobs([{ id: randomUUID(), body, notBefore: clock.now() + 50 }]))
    await clock.advance(200)
    expect(runs).toBe(2)
    await loop.close({ graceMs: 0 })
    expect(clock.timers).toBe(0)
  })
})

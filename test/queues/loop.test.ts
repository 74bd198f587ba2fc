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
    const late: Store = {
      ...store,
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
    await loop.close({ graceMs: 0 })
    claim.resolve()
    await clock.advance(0)
    expect([worked, clock.timers]).toEqual([false, 0])
  })
})

/** What deletes by what is stored: filters, retention, and forgetting over stores that fail. What engines do is in the contract. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'
import type { CreateQueueOptions } from '../../src/store/arguments.ts'
import { dropMatching } from '../../src/store/drop.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import type { DeadLetter, DeadLetterPage, Outcome } from '../../src/store/queue-types.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { setUpQueue } from './stores.ts'

const HOUR = 60 * 60_000
const letterOf = (id: string, at: number): DeadLetter => {
  return { id, body: Buffer.from(''), reason: 'no', retryState: undefined, failedAt: new Date(at) }
}
const jobOf = (body = 'job') => ({ id: randomUUID(), body: Buffer.from(body) })

function setUp(options: Partial<CreateQueueOptions> = {}, change: Partial<QueueStore> = {}) {
  const parts = setUpQueue(change, options)
  const { clock, queue } = parts
  const work = () => queue.work(async (): Promise<Outcome> => ({ deadLetter: 'no' }), { concurrency: 10 })
  const left = async () => (await queue.deadLetters()).map(({ body }) => String(Buffer.from(body)))
  const fail = async (...bodies: string[]) => {
    await queue.push(bodies.map((body) => jobOf(body)))
    await clock.advance(0)
  }
  return { ...parts, work, left, fail }
}

describe('the retention of dead letters', () => {
  it('is for ever by default, without a timer', async () => {
    const { clock, work, left, fail } = setUp()
    work()
    await fail('a')
    await clock.advance(365 * 24 * HOUR)
    expect([await left(), clock.timers]).toEqual([['a'], 0])
  })

  it('drops those that are older when the queue gets its handler, and once an hour', async () => {
    const { clock, work, left, fail, queue } = setUp({ deadLetterRetentionMs: 10 * HOUR })
    expect(clock.timers).toBe(0)
    work()
    await fail('a')
    await clock.advance(5 * HOUR)
    await fail('b')
    await clock.advance(5 * HOUR)
    expect(await left()).toEqual(['a', 'b'])
    await clock.advance(HOUR)
    expect(await left()).toEqual(['b'])
    await clock.advance(5 * HOUR)
    expect(await left()).toEqual([])
    await queue.close({ graceMs: 0 })
    expect(clock.timers).toBe(0)
  })

  it('that is shorter than an hour is looked at as often as it lasts', async () => {
    const { clock, work, left, fail } = setUp({ deadLetterRetentionMs: 1000 })
    work()
    await clock.advance(500)
    await fail('a')
    await clock.advance(1499)
    expect(await left()).toEqual(['a'])
    await clock.advance(1)
    expect(await left()).toEqual([])
  })

  it('drops nothing while the clock of the machine is ahead for a while', async () => {
    const time = manualClock()
    let aheadMs = 0
    const { queue } = setUpQueue(
      {},
      { deadLetterRetentionMs: 10 * HOUR, clock: { ...time, now: () => time.now() + aheadMs } },
    )
    queue.work(async (): Promise<Outcome> => ({ deadLetter: 'no' }), { concurrency: 10 })
    await queue.push([jobOf()])
    await time.advance(0)
    aheadMs = 365 * 24 * HOUR
    await time.advance(HOUR)
    aheadMs = 0
    await time.advance(2 * HOUR)
    expect(await queue.deadLetters()).toHaveLength(1)
    aheadMs = 365 * 24 * HOUR
    await time.advance(2 * HOUR)
    expect(await queue.deadLetters()).toEqual([])
  })

  it('goes on after an error, which onError receives', async () => {
    let isAway = true
    let lists = 0
    const deadLetters = () => {
      lists += 1
      if (isAway) throw new Error('away')
      return []
    }
    const { clock, work, errors } = setUp({ deadLetterRetentionMs: 1000 }, { deadLetters })
    work()
    await clock.advance(1500)
    isAway = false
    await clock.advance(5000)
    expect(errors).toMatchObject([{ code: 'queue_unavailable' }, { code: 'queue_unavailable' }])
    expect(lists).toBe(7)
  })

  it('ends with the queue, also while it drops, and reports nothing then', async () => {
    const gate = Promise.withResolvers<never>()
    const { clock, queue, work, errors } = setUp({ deadLetterRetentionMs: 1000 }, { deadLetters: () => gate.promise })
    work()
    const closed = queue.close({ graceMs: 0 })
    await clock.advance(1_000) // Closing waits for calls under way, not for long.
    await closed
    gate.reject(new Error('closed'))
    await clock.advance(10_000)
    expect([errors, clock.timers]).toEqual([[], 0])
  })

  it('does not keep the process alive', async () => {
    const timers: NodeJS.Timeout[] = []
    const setTimer = (...args: [() => void, number]) => timers.at(timers.push(setTimeout(...args)) - 1)
    const { work, queue } = setUp({ deadLetterRetentionMs: HOUR, clock: { ...systemClock, setTimeout: setTimer } })
    work()
    await new Promise((resolve) => setImmediate(resolve))
    expect(timers.map((timer) => timer.hasRef())).toEqual([false])
    await queue.close({ graceMs: 0 })
  })
})

describe('dead letters that are dropped by what they are', () => {
  it('are found on every page, and the list is read to its end once', async () => {
    const { queue, work, fail, left } = setUp()
    work()
    const bodies = Array.from({ length: 1_300 }, (_, index) => (index % 2 === 0 ? `ada ${index}` : `bob ${index}`))
    await fail(...bodies)
    await queue.drain() // More turns than `advance` waits for on a busy machine.
    const { deleted } = await queue.forget(({ body }) => String(Buffer.from(body)).startsWith('ada'))
    expect(deleted).toBe(650)
    expect((await left()).every((body) => body.startsWith('bob'))).toBe(true)
    expect((await queue.counts()).deadLetters).toBe(650)
  })

  it('stop at the first one that is too young', async () => {
    const pages: (string | undefined)[] = []
    const letter = (id: number) => letterOf(`${id}`, id)
    const deadLetters = async ({ after }: DeadLetterPage) => {
      pages.push(after)
      return Array.from({ length: 500 }, (_, index) => letter(Number(after ?? -1) + 1 + index))
    }
    const dropped: string[] = []
    const drop = async (ids: readonly string[]) => dropped.push(...ids) && ids.length
    const odd = ({ id }: { id: string }) => Number(id) % 2 === 1
    expect(await dropMatching({ deadLetters, drop }, { matches: odd, olderThan: new Date(700) })).toBe(350)
    expect(pages).toEqual([undefined, '499'])
    expect(dropped).toEqual([...new Set(dropped)])
  })
})

describe('forget', () => {
  it('ends when the queue closes, and asks the store for nothing more', async () => {
    let pages = 0
    function* jobs() {
      for (;;) {
        pages += 1
        yield [jobOf()]
      }
    }
    const { queue } = setUp({}, { jobs })
    const forgotten = queue.forget(() => true)
    await queue.close({ graceMs: 0 })
    const before = pages
    await expect(forgotten).rejects.toMatchObject({ code: 'shutting_down' })
    expect(pages).toBe(before)
  })

  it('passes on what the function throws', async () => {
    const { queue } = setUp()
    await queue.push([jobOf()])
    const failure = new Error('no')
    const matches = () => {
      throw failure
    }
    await expect(queue.forget(matches)).rejects.toBe(failure)
  })
})

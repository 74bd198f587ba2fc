/** What deletes by what is stored: filters, retention, and forgetting over stores that fail. What engines do is in the contract. */

import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import type { CreateQueueOptions } from '../../src/store/arguments.ts'
import type { QueueStore } from '../../src/store/queue-store.ts'
import { Retention } from '../../src/store/retention.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { bodiesOf, jobOf, work } from '../support/queues.ts'
import { until } from '../support/until.ts'
import { newFile } from './sqlite/set-up.ts'
import { setUpQueue } from './stores.ts'

const HOUR = 60 * 60_000

/** A queue whose jobs all fail. */
function setUp(options: Partial<CreateQueueOptions> = {}, change: Partial<QueueStore> = {}) {
  const parts = setUpQueue(change, options)
  const { clock, queue } = parts
  const left = async () => bodiesOf(await queue.deadLetters())
  const fail = async (...bodies: string[]) => {
    await queue.push(bodies.map((body) => jobOf(body)))
    await clock.advance(0)
  }
  return { ...parts, work: () => work(queue, () => ({ deadLetter: 'no' })), left, fail }
}

describe('the retention of dead letters', () => {
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

  it('drops nothing while the clock of the machine is ahead for a while', async () => {
    const time = manualClock()
    let aheadMs = 0
    const clock = { ...time, now: () => time.now() + aheadMs }
    const { work, fail, left } = setUp({ deadLetterRetentionMs: 10 * HOUR, clock })
    work()
    await fail('a')
    for (const ms of [365 * 24 * HOUR, 365 * 24 * HOUR - 60_000, 0]) {
      aheadMs = ms
      await time.advance(HOUR)
    }
    await time.advance(HOUR)
    expect(await left()).toEqual(['a'])
    aheadMs = 365 * 24 * HOUR
    await time.advance(HOUR)
    aheadMs -= 59_999 // No more than clocks are corrected by.
    await time.advance(HOUR)
    expect(await left()).toEqual([])
  })

  it('goes on after an error, which onError receives', async () => {
    const deadLetters = vi.fn<QueueStore['deadLetters']>(() => Promise.reject(new Error('away')))
    const { clock, work, errors } = setUp({ deadLetterRetentionMs: 1000 }, { deadLetters })
    work()
    await clock.advance(1500)
    deadLetters.mockReturnValue([])
    await clock.advance(5000)
    expect(errors).toMatchObject([{ code: 'queue_unavailable' }, { code: 'queue_unavailable' }])
    expect(deadLetters).toHaveBeenCalledTimes(7)
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

  it('does not keep the process alive, nor do marks', async () => {
    const timers: NodeJS.Timeout[] = []
    const setTimer = (...args: [() => void, number]) => timers.at(timers.push(setTimeout(...args)) - 1)
    const clock = { ...systemClock, setTimeout: setTimer }
    const { work, queue } = setUp({ deadLetterRetentionMs: HOUR, pollMs: HOUR, clock })
    work()
    await new Promise((resolve) => setImmediate(resolve))
    expect(timers.map((timer) => timer.hasRef())).toEqual([true, false, false]) // The first is the poll of the worker.
    await queue.close({ graceMs: 0 })
  })
})

it.each<[string, typeof memoryQueue]>([
  ['in memory', memoryQueue],
  ['in a file', (options) => sqliteQueue({ path: newFile(), ...options })],
])('a queue %s keeps dead letters as long as it is told', async (_where, open) => {
  const clock = manualClock()
  const queue = open({ clock, deadLetterRetentionMs: 1_000 })
  work(queue, () => ({ deadLetter: 'no' }))
  await queue.push([jobOf()])
  await until(async () => (await queue.counts()).deadLetters === 1)
  await until(() => clock.advance(500).then(async () => (await queue.counts()).deadLetters === 0))
  await queue.close({ graceMs: 0 })
})

it.each([
  [3_600_000, 60_000],
  [5_000, 5_000],
  [10, 1_000],
])('a log kept for %d ms is trimmed each %d ms, 500 entries at a time, until the end', async (maxAgeMs, everyMs) => {
  const clock = manualClock()
  const trim = vi.fn(async (_which: object) => 499).mockResolvedValueOnce(500)
  const retention = new Retention(clock, () => {})
  const which = () => ({ before: new Date(clock.now() - maxAgeMs), maxBytes: Number.MAX_SAFE_INTEGER, limit: 500 })
  const first = which()
  retention.keepLog(trim, { maxAgeMs })
  await clock.advance(everyMs - 1)
  expect(trim.mock.calls).toEqual([[first], [first]])
  trim.mockImplementation(async () => {
    retention.close()
    return 500
  })
  await clock.advance(1)
  expect([trim.mock.calls.slice(2), clock.timers]).toEqual([[[which()]], 0])
})

it('forget ends when the queue closes, and asks the store for nothing more', async () => {
  let pages = 0
  function* jobs() {
    for (; ; pages += 1) yield [jobOf()]
  }
  const { queue } = setUp({}, { jobs })
  const forgotten = queue.forget(() => true)
  await queue.close({ graceMs: 0 })
  const before = pages
  await expect(forgotten).rejects.toMatchObject({ code: 'shutting_down' })
  expect(pages).toBe(before)
})

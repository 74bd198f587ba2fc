/** The pace of an inbox and of its handlers, its pauses, and the chance in its retries. */

import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { inspectQueue } from '../../src/queues.ts'
import { smallerRoom } from '../../src/receive/pace.ts'
import type { HandlerOptions } from '../../src/receive/selection.ts'
import type { Outcome, Queue } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { handleJob, setUpInbox } from '../support/inbox.ts'
import { deliver, setUp } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

type Set = ReturnType<typeof setUpInbox>

async function send({ receiver }: Pick<Set, 'receiver'>, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await deliver(receiver, { ...fixtures.track, messageId: `message-${index}` })
  }
}

/** Records when a handler is called, in milliseconds since the start. */
function recordTimes({ clock }: Set) {
  const start = clock.now()
  const times: number[] = []
  return { times, handler: async () => void times.push(clock.now() - start) }
}

/** An inbox that records the outcomes of its claims. */
function setUpOutcomes(inbox: Parameters<typeof setUpInbox>[0] = {}) {
  const outcomes: Outcome[] = []
  const set = setUpInbox({ concurrency: 100, ...inbox })
  const { work } = set.queue
  const recordingWork: Queue['work'] = (handle, how) =>
    work(async (...claimed) => {
      const outcome = await handle(...claimed)
      outcomes.push(outcome)
      return outcome
    }, how)
  Object.assign(set.queue, { work: recordingWork })
  return { ...set, outcomes }
}

it('inbox.maxPerSecond spreads the messages: a tenth of a second at once, and the others one after the other', async () => {
  const set = setUpInbox({ maxPerSecond: 20, concurrency: 100 })
  const { times, handler } = recordTimes(set)
  const work = vi.spyOn(set.queue, 'work')
  set.receiver.on('*', handler)
  await send(set, 10)
  set.receiver.start()
  await set.clock.advance(1000)
  expect(work.mock.calls[0]?.[1].maxPerSecond).toBe(20) // An engine may count for all processes.
  expect(times).toEqual([0, 0, 50, 100, 150, 200, 250, 300, 350, 400])
})

describe('maxPerSecond of a handler', () => {
  it('gives it its messages in turn, each back once and without an attempt, while another gets all of them at once', async () => {
    const set = setUpOutcomes()
    const { receiver, clock, outcomes } = set
    const [crm, mail] = [recordTimes(set), recordTimes(set)]
    const attempts: number[] = []
    receiver.on('*', crm.handler, { name: 'crm', maxPerSecond: 10 })
    receiver.on('*', mail.handler, { name: 'mail' })
    receiver.observe({ handled: ({ attempt }) => attempts.push(attempt) })
    await send(set, 5)
    receiver.start()
    await clock.advance(0)
    expect(mail.times).toEqual([0, 0, 0, 0, 0])
    expect(await set.queue.counts()).toMatchObject({ waiting: 4, active: 0 })
    await clock.advance(1000)
    expect(crm.times).toEqual([0, 100, 200, 300, 400])
    expect(mail.times).toHaveLength(5)
    expect(attempts).toEqual([1, 1, 1, 1, 1])
    expect(outcomes.filter((outcome) => 'retryAt' in outcome)).toHaveLength(4)
    expect(await set.queue.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  })

  it('lets a new message wait behind those that have a turn, and counts no wait as a lost claim', async () => {
    const set = setUpOutcomes()
    const { times, handler } = recordTimes(set)
    set.receiver.on('*', handler, { name: 'constructor', maxPerSecond: 1 })
    await send(set, 20)
    set.receiver.start()
    await set.clock.advance(500)
    await deliver(set.receiver, fixtures.page)
    await set.clock.advance(30_000)
    expect(times).toEqual(Array.from({ length: 21 }, (_, index) => index * 1000))
    expect(set.outcomes).toHaveLength(21 + 20)
  })

  it('has a message back at the first turn of a handler, also when another one waits longer', async () => {
    const set = setUpOutcomes()
    const [slow, fast] = [recordTimes(set), recordTimes(set)]
    set.receiver.on('*', slow.handler, { name: 'slow', maxPerSecond: 1 })
    set.receiver.on('*', fast.handler, { name: 'fast', maxPerSecond: 2 }).start()
    await send(set, 2)
    await set.clock.advance(1000)
    expect([...slow.times, ...fast.times]).toEqual([0, 1000, 0, 500])
  })

  it('is not that of a replay for others', async () => {
    const set = setUpOutcomes({ history: { maxAgeMs: 60_000 } })
    set.receiver.on('*', () => {}, { name: 'crm', maxPerSecond: 1 }).on('*', () => {}, { name: 'mail' })
    set.receiver.start()
    await send(set, 3)
    await set.clock.advance(5_000)
    set.outcomes.length = 0

    await set.receiver.replay({ handlers: ['mail'] })
    await set.clock.advance(0)

    expect(set.outcomes).toEqual(Array(3).fill({ complete: true }))
  })

  it('stores no turn that is over', async () => {
    const retryState = Buffer.from('{"attempts":0,"releases":1,"turns":[["crm",0]]}')
    const { state } = await handleJob({ claimCount: 2, retryState }, { handlers: { crm: throwing('no') } })
    expect(state).not.toHaveProperty('turns')
  })

  it('keeps the pace after a pause in which many turns have passed', async () => {
    const set = setUpOutcomes()
    const { times, handler } = recordTimes(set)
    set.receiver.on('*', handler, { name: 'crm', maxPerSecond: 10 })
    await send(set, 60)
    set.receiver.start()
    await set.clock.advance(0)
    await set.receiver.pause()
    await set.clock.advance(60_000)
    set.receiver.resume()
    await set.clock.advance(10_000)
    expect(times).toHaveLength(60)
    const within = (from: number) => times.filter((at) => at >= from && at < from + 1000).length
    expect(Math.max(...times.map(within))).toBeLessThanOrEqual(20) // The tokens of a second, and a second more.
    expect(set.outcomes.length).toBeLessThanOrEqual(60 * 3)
  })

  it.each([
    [{ maxPerSecond: 5 }, {}, 'needs a `name`'],
    [{ name: 'crm', maxPerSecond: 0 }, {}, 'must be a whole number from 1 to'],
    [{ name: 'crm', maxPerSecond: 5 }, { inbox: undefined }, 'needs an inbox'],
    [{ name: 'crm', maxPerSecond: 5 }, { transactional: true }, 'cannot be combined with `inbox.transactional`'],
  ] satisfies [HandlerOptions, object, string][])('%o with %o is a TypeError', (options, more, text) => {
    const { receiver } = 'inbox' in more ? setUp() : setUpInbox(more, {}, { isTransactional: true })
    for (const register of [
      () => receiver.on('*', () => {}, options),
      () => receiver.onAudience('vip', { entered() {} }, options),
    ]) {
      expect(register).toThrow(new RegExp(`^\`on(Audience)?: maxPerSecond\` ${text}`))
    }
    receiver.on('*', () => {}, { name: 'crm' }) // The refused handler has not taken the name.
  })
})

describe('pause', () => {
  it('resolves when no handler runs any more, at resume and at close; requests are stored until resume', async () => {
    const set = setUpInbox()
    const { receiver, clock, queue } = set
    const ends: (() => void)[] = []
    receiver.on('*', () => new Promise<void>((resolve) => ends.push(resolve)))
    receiver.start()
    await send(set, 1)
    await clock.advance(0)
    const paused = vi.fn()
    const pausing = receiver.pause().then(paused)
    await deliver(receiver, fixtures.page)
    await clock.advance(1000)
    expect([paused.mock.calls, ends.length]).toEqual([[], 1])
    expect(await receiver.health()).toMatchObject({ paused: true, ready: true, status: 'ok', waiting: 1, active: 1 })
    ends[0]?.()
    await pausing
    expect(await queue.counts()).toMatchObject({ waiting: 1, active: 0 })
    receiver.resume()
    await clock.advance(0)
    expect(ends).toHaveLength(2)
    expect(await receiver.health()).toMatchObject({ paused: false, active: 1 })
    await inspectQueue(queue, { clock }).pause()
    expect(await receiver.health()).toMatchObject({ paused: true })

    for (const end of [() => receiver.resume(), () => void receiver.close({ graceMs: 0 })]) {
      const pausing = receiver.pause()
      end()
      await clock.advance(1000)
      await pausing
    }
  })
})

it('inbox.random spreads the default retries from 0 to their longest delays', async () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  onTestFinished(() => void vi.mocked(Math.random).mockRestore())
  for (const [random, delays] of [
    [undefined, [1000, 5000, 30_000]],
    [() => 0.25, [500, 2500, 15_000]],
    [() => 0.999_999, [2000, 10_000, 60_000]],
  ] as const) {
    const set = setUpInbox({ random } as object)
    const { times, handler } = recordTimes(set)
    set.receiver.on('*', () => handler().then(() => Promise.reject(new Error('no'))))
    set.receiver.start()
    await send(set, 1)
    await set.clock.advance(80_000)
    expect(times.slice(1, 4).map((at, index) => at - (times[index] ?? 0))).toEqual(delays)
  }
})

it('of two rooms, the smaller one says how much is claimed, and when there is room again', () => {
  const paced = { count: () => 3, nextAt: () => new Date(1) }
  const batches = (count: number) => ({ count: () => count, nextAt: () => undefined })
  const [full, free] = [smallerRoom(batches(0), paced), smallerRoom(batches(5), paced)]
  expect([full?.count(), full?.nextAt()]).toEqual([0, undefined])
  expect([free?.count(), free?.nextAt()]).toEqual([3, new Date(1)])
})

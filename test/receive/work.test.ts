/** `receiver.work()`: the messages of an inbox in a process that does not stay. */

import { describe, expect, it, vi } from 'vitest'
import type { ReceiverWorkOptions } from '../../src/index.ts'
import { createQueue } from '../../src/queues.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { watchStore } from '../store/stores.ts'
import { overTime, setUpInbox } from '../support/inbox.ts'
import { deliver, setUp } from '../support/receive.ts'

/** An inbox on a durable queue that a user made with `createQueue`. */
function setUpDurable(inbox: Parameters<typeof setUpInbox>[0] = {}) {
  const clock = manualClock()
  const watched = watchStore(clock, { isSlow: true })
  const queue = createQueue(watched.store, { name: 'inbox', clock })
  return { ...setUp({ clock, inbox: { queue, random: () => 0.5, ...inbox } }), clock, queue, watched }
}

type Set = ReturnType<typeof setUpDurable>

async function send({ receiver }: Pick<Set, 'receiver'>, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await deliver(receiver, { ...fixtures.track, messageId: `m-${index}` })
}

/** Starts the work, and moves the clock until it has ended. Returns its result and how long it took. */
async function work({ receiver, clock }: Pick<Set, 'receiver' | 'clock'>, options: ReceiverWorkOptions) {
  const startedAt = clock.now()
  const result = await overTime(clock, receiver.work(options), 50)
  return { ...result, tookMs: clock.now() - startedAt }
}

describe.each([
  ['in memory', () => setUpInbox()],
  ['on a queue of a user', setUpDurable],
])('%s', (_name, setUpOne) => {
  it('until empty, handles what is due, leaves what comes later, and can be called again', async () => {
    const set = setUpOne()
    const handler = vi.fn().mockRejectedValueOnce(new Error('no'))
    set.receiver.on('track', handler).on('page', () => {})
    await send(set, 1)
    for (const body of [fixtures.page, '{}']) await deliver(set.receiver, body)
    expect(await work(set, { until: 'empty' })).toMatchObject({ handled: 1, failed: 2, left: 1 })
    await set.clock.advance(60_000)
    expect(await set.queue.counts()).toMatchObject({ waiting: 1, active: 0 }) // Nothing works between the calls.
    expect(await work(set, { until: 'empty', forMs: 10_000 })).toMatchObject({ handled: 1, failed: 0, left: 0 })
    await set.receiver.close({ graceMs: 0 })
  })

  it('at its end, tells handlers to stop and gives back what it holds, uncounted', async () => {
    const set = setUpOne()
    const reasons: unknown[] = []
    const attempts: number[] = []
    set.receiver.observe({ handled: ({ attempt }) => attempts.push(attempt) })
    let isSlow = true
    set.receiver.on('*', async (_message, { signal }) => {
      if (!isSlow) return
      signal.addEventListener('abort', () => reasons.push(signal.reason.code))
      await new Promise(() => {})
    })
    await send(set, 12)
    const { tookMs, ...result } = await work(set, { forMs: 5000 })
    expect(result).toEqual({ handled: 0, failed: 0, left: 12 })
    expect(tookMs).toBeGreaterThanOrEqual(5000)
    expect(tookMs).toBeLessThan(5200)
    expect(reasons).toEqual(Array.from({ length: 10 }, () => 'shutting_down'))
    expect(await set.queue.counts()).toMatchObject({ waiting: 12, active: 0 })
    isSlow = false
    expect(await work(set, { until: 'empty' })).toMatchObject({ handled: 12, failed: 0, left: 0 })
    expect(attempts).toEqual(Array.from({ length: 12 }, () => 1))
  })
})

describe('the work', () => {
  it('goes on for all of its time without `until`, and takes what arrives meanwhile', async () => {
    const set = setUpDurable()
    const handler = vi.fn()
    set.receiver.on('*', handler)
    const working = set.receiver.work({ forMs: 10_000 })
    await set.clock.advance(5000)
    await send(set, 3)
    await set.clock.advance(4000)
    expect(handler).toHaveBeenCalledTimes(3)
    await set.clock.advance(1000)
    expect(await working).toEqual({ handled: 3, failed: 0, left: 0 })
  })

  it('until empty, waits for the turns of a handler with a pace', async () => {
    const set = setUpDurable()
    set.receiver.on('*', () => {}, { name: 'crm', maxPerSecond: 1 })
    await send(set, 3)
    expect(await work(set, { until: 'empty' })).toMatchObject({ handled: 3, left: 0 })
  })

  it('ends when its signal aborts, also before it begins', async () => {
    const set = setUpDurable()
    set.receiver.on('*', () => new Promise(() => {}))
    await send(set, 1)
    const stopping = new AbortController()
    const working = set.receiver.work({ forMs: 60_000, signal: stopping.signal })
    await set.clock.advance(1000)
    expect(await set.queue.counts()).toMatchObject({ waiting: 0, active: 1 })
    stopping.abort()
    await set.clock.advance(0)
    expect(await working).toEqual({ handled: 0, failed: 0, left: 1 })
    expect(await work(set, { forMs: 60_000, signal: stopping.signal })).toMatchObject({ left: 1, tookMs: 50 })
  })

  it('holds still while the receiver is paused', async () => {
    const set = setUpDurable()
    set.receiver.on('*', () => {})
    await send(set, 1)
    await set.receiver.pause()
    expect(await work(set, { until: 'empty', forMs: 1000 })).toMatchObject({ handled: 0, left: 1 })
    set.receiver.resume()
    await set.clock.advance(1000)
    expect(await set.queue.counts()).toMatchObject({ waiting: 1 }) // Only `work` handles messages.
    expect(await work(set, { until: 'empty' })).toMatchObject({ handled: 1, left: 0 })
  })

  it('rejects when the queue fails', async () => {
    const { receiver, clock, watched } = setUpDurable()
    receiver.on('*', () => {})
    watched.isAway = true
    const rejected = expect(receiver.work({ until: 'empty' })).rejects.toMatchObject({ code: 'queue_unavailable' })
    await clock.advance(1000)
    await rejected
  })

  it.each([
    [0, { handled: 0, failed: 0 }],
    [5000, { handled: 1, failed: 0, left: 0 }],
  ])('ends when the receiver is closed with a grace of %i ms', async (graceMs, expected) => {
    const { receiver, clock, watched } = setUpDurable()
    const ends: (() => void)[] = []
    receiver.on('*', () => new Promise<void>((resolve) => ends.push(resolve)))
    await send({ receiver }, 1)
    const ended = receiver.work({ forMs: 60_000 }).catch((error: unknown) => error)
    await clock.advance(0)
    const closed = receiver.close({ graceMs })
    await clock.advance(3000)
    ends[0]?.()
    await clock.advance(5000)
    await closed
    expect(await ended).toMatchObject(expected)
    expect((await watched.store.counts()).waiting).toBe(graceMs === 0 ? 1 : 0)
  })

  it('needs a handler, and neither `start` nor another call beside it', async () => {
    const forMs = 1000
    const { receiver, clock } = setUpInbox()
    await expect(receiver.work({ forMs })).rejects.toThrow('`work` needs a handler.')
    receiver.on('*', () => {})
    const working = receiver.work({ forMs })
    await expect(receiver.work({ forMs })).rejects.toThrow('`work` is already running')
    expect(() => receiver.start()).toThrow('`start` cannot be combined with')
    await clock.advance(forMs)
    await working
    expect(() => receiver.on('page', () => {})).toThrow(TypeError)
    expect(() => receiver.start()).toThrow('`start` cannot be combined with')
    await receiver.close()
    await expect(receiver.work({ forMs })).rejects.toThrow('`work` needs an open receiver')

    const started = setUpInbox().receiver.on('*', () => {})
    started.start()
    await expect(started.work({ forMs })).rejects.toThrow('`work` cannot be combined with')
  })
})

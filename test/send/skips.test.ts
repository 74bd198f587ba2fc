/** Messages that a destination does not queue: which, what the caller gets, and where they are counted. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { SkippedEvent } from '../../src/send/destination-events.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { setUp } from './set-up.ts'

const DAY = 24 * 3_600_000
const historical = { queued: false, reason: 'historical' }
const ago = (ms: number) => new Date(manualClock().now() - ms)

function hear(): SkippedEvent[] {
  const events: SkippedEvent[] = []
  const listener = (event: unknown) => void events.push(event as SkippedEvent)
  subscribe('hookline:skipped', listener)
  onTestFinished(() => void unsubscribe('hookline:skipped', listener))
  return events
}

describe('historicalAfterMs', () => {
  it('a message that is older is not queued, one that is as old is', async () => {
    const { clock, captured, destination } = setUp([200], { historicalAfterMs: 30 * DAY })
    const track = (ms: number) => destination.track({ userId: 'u', event: 'E', timestamp: ago(ms) })
    expect(await track(30 * DAY + 1)).toEqual(historical)
    expect(await track(30 * DAY)).toMatchObject({ queued: true })
    expect(await track(-DAY)).toMatchObject({ queued: true })
    await clock.advance(0)
    expect(captured.requests).toHaveLength(2)
  })

  it('a delete is queued whatever its timestamp', async () => {
    const { destination } = setUp([200], { historicalAfterMs: DAY })
    expect(await destination.delete({ userId: 'u', timestamp: ago(99 * DAY) })).toMatchObject({ queued: true })
  })

  it('the age is that of the time, not of its zone; a message without a timestamp is new', async () => {
    const { destination } = setUp([200], { historicalAfterMs: DAY })
    const track = (call: object) => destination.track({ userId: 'u', event: 'E', ...call })
    expect(await track({ timestamp: '2026-01-14T10:30:00.000+01:00' })).toMatchObject({ queued: true })
    expect(await track({ timestamp: '2026-01-14T10:29:59.999+01:00' })).toEqual(historical)
    expect(await track({})).toMatchObject({ queued: true })
  })

  it('a message without a timestamp is new, also when time goes by until it is queued', async () => {
    const { now, ...clock } = manualClock()
    let calls = 0
    const { destination } = setUp([200], { clock: { ...clock, now: () => now() + 2 * calls++ }, historicalAfterMs: 1 })
    expect(await destination.track({ userId: 'u', event: 'E' })).toMatchObject({ queued: true })
  })

  it.each([0, '1d'])('%j is a TypeError', (historicalAfterMs) => {
    expect(() => setUp([200], { historicalAfterMs: historicalAfterMs as never })).toThrow('`historicalAfterMs`')
  })
})

describe('skipped messages', () => {
  it('are counted by reason, and published on hookline:skipped', async () => {
    const events = hear()
    const { destination } = setUp([200], { historicalAfterMs: DAY })
    await destination.track({ userId: 'u', event: 'old', timestamp: ago(2 * DAY) })
    await destination.track({ userId: 'u', event: 'other', integrations: { All: false } })
    await destination.track({ userId: 'u', event: 'new' })
    destination.disable()
    await destination.track({ userId: 'u', event: 'off', timestamp: ago(2 * DAY), integrations: { All: false } })

    expect((await destination.health()).skipped).toEqual({
      switched_off: 1,
      not_selected: 1,
      historical: 1,
      filtered: 0,
    })
    expect(events).toMatchObject([
      { reason: 'historical', message: { event: 'old' } },
      { reason: 'not_selected', message: { event: 'other' } },
      { reason: 'switched_off', message: { event: 'off' } },
    ])
  })

  it('are not counted when the others of their call were refused: the caller submits them again', async () => {
    const events = hear()
    const clock = manualClock()
    const queue = memoryQueue({ clock, maxJobs: 1 })
    const { destination } = setUp(['hang'], { queue, clock, historicalAfterMs: DAY })
    const old = { ...fixtures.track, timestamp: ago(2 * DAY).toISOString() }
    const submissions = [old, fixtures.track, fixtures.track].map((message) => ({ message }))
    await expect(destination.submit(submissions)).rejects.toMatchObject({ code: 'queue_full' })

    expect((await destination.health()).skipped.historical).toBe(0)
    expect(events).toEqual([])
  })
})

describe('health()', () => {
  test('counts the messages of the queue', async () => {
    const { clock, destination } = setUp([404, 500, 'hang'], { concurrency: 1 })
    for (let i = 0; i < 2; i++) await destination.delete({ userId: 'u' })
    await clock.advance(0)
    for (let i = 0; i < 2; i++) await destination.delete({ userId: 'u' })
    await clock.advance(1_000)

    expect(await destination.health()).toEqual({
      ready: true,
      status: 'ok',
      waiting: 2,
      active: 1,
      deadLetters: 1,
      oldestDueAgeMs: 1_000,
      retrying: 1,
      asOf: new Date(clock.now()),
      urls: [
        {
          url: 'https://shop.example/webhooks',
          circuit: 'closed',
          delivered: 0,
          failed: 2,
          lastFailure: { at: expect.any(Date), status: 500 },
        },
      ],
      skipped: { switched_off: 0, not_selected: 0, historical: 0, filtered: 0 },
      transformFailed: 0,
    })
    await destination.close({ graceMs: 0 })
    expect(await destination.health()).toMatchObject({ status: 'closing', waiting: 0 })
  })

  test('is unavailable when the queue does not answer within a second', async () => {
    const clock = manualClock()
    const queue = { ...memoryQueue({ clock }), counts: () => new Promise<never>(() => {}) }
    const { destination } = setUp([200], { queue, clock })
    const health = destination.health()
    await clock.advance(1_000)
    expect(await health).toMatchObject({ status: 'unavailable', waiting: 0 })
  })
})

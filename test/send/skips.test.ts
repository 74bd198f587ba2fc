/** Messages that a destination does not queue: which, what the caller gets, and where they are counted. */

import { describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { SkippedEvent } from '../../src/send/destination-events.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { hear } from '../support/channel.ts'
import { HOUR, setUp } from './set-up.ts'

const DAY = 24 * HOUR
const historical = { queued: false, reason: 'historical' }
const at = manualClock().now()
const ago = (ms: number) => new Date(at - ms)

describe('with historicalAfterMs', () => {
  it.each<[string, object, object]>([
    ['that is older is not queued', { timestamp: ago(DAY + 1) }, historical],
    ['that is as old is queued', { timestamp: ago(DAY) }, { queued: true }],
    ['of the future is queued', { timestamp: ago(-DAY) }, { queued: true }],
  ])('a message %s: %j', async (_what, call, expected) => {
    const { clock, captured, destination } = setUp([200], { historicalAfterMs: DAY })
    expect(await destination.track({ userId: 'u', event: 'E', ...call })).toMatchObject(expected)
    await clock.advance(0)
    expect(captured.requests).toHaveLength(expected === historical ? 0 : 1)
  })

  it('a delete is queued whatever its timestamp', async () => {
    const { destination } = setUp([200], { historicalAfterMs: DAY })
    expect(await destination.delete({ userId: 'u', timestamp: ago(99 * DAY) })).toMatchObject({ queued: true })
  })
})

describe('skipped messages', () => {
  it('are counted by reason, and published on hookline:skipped and to observers, in the order of a submission', async () => {
    const published = hear<SkippedEvent>('hookline:skipped')
    const observed: unknown[] = []
    const { destination } = setUp([200], { historicalAfterMs: DAY })
    destination.observe({
      skipped: (event) => observed.push(event),
      queued: ({ message }) => observed.push('event' in message && message.event),
    })

    const before = await destination.health()
    const message = (event: string, more: object = {}) => ({ message: { ...fixtures.track, event, ...more } })
    const old = { timestamp: ago(2 * DAY).toISOString() }
    const other = { integrations: { All: false } }
    await destination.submit([message('old', old), message('other', other), message('new', { timestamp: undefined })])
    destination.disable()
    await destination.submit([message('off', { ...old, ...other })])

    const { skipped } = await destination.health()
    expect(skipped).toEqual({ switched_off: 1, not_selected: 1, historical: 1, filtered: 0 })
    expect(before.skipped).toEqual({ switched_off: 0, not_selected: 0, historical: 0, filtered: 0 })
    expect(published).toMatchObject([
      { reason: 'historical', message: { event: 'old' }, at },
      { reason: 'not_selected', message: { event: 'other' }, at },
      { reason: 'switched_off', message: { event: 'off' }, at },
    ])
    expect(observed).toEqual([...published.slice(0, 2), 'new', ...published.slice(2)])
  })

  it('are not counted when the others of their call were refused: the caller submits them again', async () => {
    const events = hear('hookline:skipped')
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

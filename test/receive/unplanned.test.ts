/** Events without a schema: each message of one is counted and reported when it arrives, and nothing else is. */

import { expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createReceiver, type ReceiverOptions, type UnplannedEvent } from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { schemasOf } from '../../src/receive/inspected.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { hear } from '../support/channel.ts'
import { deliver, secret, setUp } from '../support/receive.ts'

const events = { 'Order Completed': z.object({ total: z.number() }) }
const completed = { ...fixtures.track, event: 'Order Completed', properties: { total: 1 } }
const of = (event: string, messageId = 'one') => ({ ...fixtures.track, event, messageId })

/** Also gives the events and counts that its callback got. */
function setUpWatched(options: ReceiverOptions<typeof events> = {}) {
  const calls: [string, number][] = []
  return { calls, ...setUp({ events, onUnplanned: ({ event }, { count }) => calls.push([event, count]), ...options }) }
}

it('each message of an event without a schema is reported, with how many of it there have been', async () => {
  const published = hear<UnplannedEvent>('hookline:unplanned')
  const { receiver, calls } = setUpWatched()
  for (const event of ['Order Placed', 'order completed', 'Order Placed']) await deliver(receiver, of(event))
  await deliver(receiver, completed)
  await deliver(receiver, fixtures.identify)
  expect(calls).toEqual([
    ['Order Placed', 1],
    ['order completed', 1],
    ['Order Placed', 2],
  ])
  expect(published).toMatchObject(
    calls.map(([event, count]) => ({ message: { event }, delivery: { id: expect.any(String) }, count })),
  )
  expect(await receiver.health()).toMatchObject({ unplanned: 3 })
})

it.each([
  ['of schemas for no event, every event is one', { events: {} }, 1],
  ['without the option, none is', {}, 0],
])('%s', async (_what, options, unplanned) => {
  const { receiver } = setUp(options)
  await deliver(receiver, completed)
  expect(await receiver.health()).toMatchObject({ unplanned })
})

it('a message that is refused, or that nothing proves to be authentic, is not reported', async () => {
  const { receiver, calls } = setUpWatched()
  await deliver(receiver, of('Order Placed'), 'another secret')
  await deliver(receiver, { ...of('Order Placed'), userId: {} })
  expect(calls).toEqual([])

  const { calls: others, receiver: unsigned } = setUpWatched({ allowUnsigned: true })
  await deliver(unsigned, of('Order Placed'))
  expect(others).toEqual([])
})

it('with an inbox: when it arrives, and not again when it is retried', async () => {
  const clock = manualClock()
  const { receiver, calls } = setUpWatched({ clock, inbox: { queue: memoryQueue({ clock }), retries: [1_000] } })
  const handler = vi.fn(() => Promise.reject(new Error('down')))
  receiver.on('track', handler).start()
  await deliver(receiver, of('Order Placed'))
  expect(calls).toEqual([['Order Placed', 1]])
  await clock.advance(1_000)
  expect(handler).toHaveBeenCalledTimes(2)
  expect(calls).toHaveLength(1)
})

it('with dedupe: a copy of a message that was handled is not reported', async () => {
  const { receiver, calls } = setUpWatched({ dedupe: memoryDedupe() })
  for (let copy = 0; copy < 2; copy += 1) await deliver(receiver, of('Order Placed'))
  expect(calls).toEqual([['Order Placed', 1]])
})

it('counts 1000 events by name, and all others together; names that are too long, too', async () => {
  const { receiver, calls } = setUpWatched()
  const [long, longest] = ['x'.repeat(201), 'y'.repeat(200)]
  for (const event of [long, longest]) await deliver(receiver, of(event))
  for (let index = 0; index < 999; index += 1) await deliver(receiver, of(`Event ${index}`))
  expect(calls.every(([, count]) => count === 1 || count === 2)).toBe(true)
  calls.length = 0
  for (const event of ['Event 3', longest, 'Another', 'One more', long]) await deliver(receiver, of(event))
  expect(calls).toEqual([
    ['Event 3', 2],
    [longest, 2],
    ['Another', 3],
    ['One more', 4],
    [long, 5],
  ])
  expect(await receiver.health()).toMatchObject({ unplanned: 1_006 })
})

it('what has a schema is known to an inspector, and seen by nothing else', () => {
  const traits = { identify: z.object({}) }
  const receiver = createReceiver({ secret, events, traits, custom: z.string() })
  expect(schemasOf(receiver)).toEqual({ events: ['Order Completed'], traits: ['identify'], custom: true })
  const none = { events: undefined, traits: undefined, custom: false }
  expect(schemasOf(createReceiver({ secret, custom: true }))).toEqual(none)
  expect(schemasOf({ ...receiver })).toEqual(none)
})

it('with strictEvents, only events with a schema may have handlers', async () => {
  const { receiver } = setUpWatched({ strictEvents: true })
  const register = (event: string) => () => receiver.on('track', event as 'Order Completed', () => {})
  expect(register('Order Complete')).toThrow(/^`on: event`.*Did you mean 'Order Completed'\?$/)
  expect(register('Sign Up')).toThrow(/^`on: event`.*'Sign Up'/)
  receiver.on('track', 'Order Completed', () => {})
  expect(await deliver(receiver, of('Sign Up'))).toMatchObject({ status: 200 })
})

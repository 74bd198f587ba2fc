/** The tracing channel `hookline:handle`. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { expect, it, onTestFinished } from 'vitest'
import type { HandleEvent } from '../../src/receive/events.ts'
import { fixtures } from '../../src/testing.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, setUp } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const channel = tracingChannel<unknown, HandleEvent>('hookline:handle')

/** Subscribes to all events. */
function watch() {
  const published: (readonly [name: string, event: HandleEvent])[] = []
  const note = (name: string) => (event: HandleEvent) => void published.push([name, event])
  const names = ['start', 'end', 'asyncStart', 'asyncEnd', 'error']
  const subscribers = Object.fromEntries(names.map((name) => [name, note(name)])) as never
  channel.subscribe(subscribers)
  onTestFinished(() => void channel.unsubscribe(subscribers))
  return { published, names: () => published.map(([name]) => name) }
}

it('publishes an attempt, with what its handlers get', async () => {
  const { published, names } = watch()
  const { receiver } = setUp()
  receiver.on('track', () => {})

  const received = await deliver(receiver, fixtures.track)

  expect(names()).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
  const [, event] = published[0] ?? []
  for (const [, each] of published) expect(each).toBe(event)
  expect(event).toMatchObject({ message: fixtures.track, attempt: 1, isStored: false })
  expect(event?.delivery).toBe('delivery' in received ? received.delivery : 'none')
  expect(event?.error).toBeUndefined()
})

it('publishes why an attempt failed; each attempt of an inbox is published', async () => {
  const { published, names } = watch()
  const { receiver, clock } = setUpInbox({ retries: [1_000] })
  receiver.on('track', throwing('boom')).start()

  await deliver(receiver, fixtures.track)
  await clock.advance(60_000)

  expect(names()).toEqual(Array(2).fill(['start', 'end', 'error', 'asyncStart', 'asyncEnd']).flat())
  expect(published[0]?.[1]).toMatchObject({ attempt: 1, isStored: true, error: { code: 'handler_failed' } })
  expect(published[5]?.[1]).toMatchObject({ attempt: 2, isStored: true, error: { code: 'handler_failed' } })
})

it('ends with an attempt that leaves a handler waiting for its turn, and with one that `close` ends', async () => {
  const { published, names } = watch()
  const { receiver, clock } = setUpInbox()
  receiver.on('page', () => {}, { name: 'crm', maxPerSecond: 1 }).on('page', () => {})
  receiver.on('track', () => new Promise(() => {})).start()

  for (const message of [fixtures.page, { ...fixtures.page, messageId: '2' }]) await deliver(receiver, message)
  await clock.advance(0)
  expect(names()).toEqual(Array(2).fill(['start', 'end', 'asyncStart', 'asyncEnd']).flat())
  await deliver(receiver, fixtures.track)
  await clock.advance(0)
  void receiver.close({ graceMs: 0 })
  await clock.advance(300)

  expect(names().slice(8)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd'])
  expect(published.at(-1)?.[1].error).toMatchObject({ code: 'shutting_down' })
})

it('a store that is bound to it holds its value in handlers, and in all that they start', async () => {
  const ids = new AsyncLocalStorage<string>()
  channel.start.bindStore(ids as never, ({ delivery }) => delivery.id)
  onTestFinished(() => void channel.start.unbindStore(ids as never))
  const { receiver } = setUp()
  const seen: unknown[] = []
  receiver.on('track', async () => {
    seen.push(ids.getStore())
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(ids.getStore())
  })

  const received = await deliver(receiver, fixtures.track)

  const { id } = (received as { delivery: { id: string } }).delivery
  expect(seen).toEqual([id, id])
  expect(ids.getStore()).toBeUndefined()
})

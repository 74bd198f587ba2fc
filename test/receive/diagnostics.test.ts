import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { expect, it, onTestFinished } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { deliver, setUp } from '../support/receive.ts'

const CHANNELS = ['received', 'refused', 'stored', 'handled', 'failed'] as const

/** What all channels publish, in its order. */
function listen() {
  const events: (readonly [string, Record<string, unknown>])[] = []
  for (const name of CHANNELS) {
    const hear = (event: unknown) => void events.push([name, event as never])
    subscribe(`hookline:${name}`, hear)
    onTestFinished(() => void unsubscribe(`hookline:${name}`, hear))
  }
  return events
}

const delivery = { id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/) }
const wait = (clock: { setTimeout(callback: () => void, ms: number): unknown }, ms: number) =>
  new Promise<void>((resolve) => clock.setTimeout(resolve, ms))

it('inline: received, then handled with how long it took', async () => {
  const { receiver, clock } = setUp()
  receiver.on('*', () => wait(clock, 70))
  const events = listen()
  const received = deliver(receiver, fixtures.track)
  await clock.advance(70)
  await received
  expect(events).toMatchObject([
    ['received', { message: fixtures.track, delivery }],
    ['handled', { message: fixtures.track, delivery, attempt: 1, durationMs: 70 }],
  ])
})

it('refused: what no handler saw, with the request', async () => {
  const { receiver } = setUp()
  const events = listen()
  await deliver(receiver, fixtures.track, 'forged')
  await deliver(receiver, '{}')
  await receiver.close()
  await deliver(receiver, fixtures.track)
  expect(events.map(([name, { error }]) => [name, (error as { code: string }).code])).toEqual([
    ['refused', 'signature_mismatch'],
    ['refused', 'message_invalid'],
    ['refused', 'shutting_down'],
  ])
  // No body: it may not be authentic.
  const headers = expect.objectContaining({ 'x-signature': expect.any(String) })
  expect(events[0]?.[1]).toEqual({
    error: expect.any(Error),
    request: { headers, path: undefined, remoteAddress: undefined },
  })
})

it('with a listener that came too late to know when it began: no handled', async () => {
  const { receiver, clock } = setUp()
  receiver.on('*', () => wait(clock, 70))
  const received = deliver(receiver, fixtures.track)
  await clock.advance(0)
  const events = listen()
  await clock.advance(70)
  expect(await received).toMatchObject({ status: 200 })
  expect(events).toEqual([])
})

/** `groupBy` of an inbox and a destination. What each engine promises of groups is in its contract. */

import { describe, expect, it, vi } from 'vitest'
import { createReceiver, type InboxOptions, type Message } from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { setUp as setUpDestination } from '../send/set-up.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, secret } from '../support/receive.ts'

const groupBy = (message: Message) => message.userId ?? message.anonymousId
const track = (messageId: string, userId: string) => ({ ...fixtures.track, messageId, userId })

function setUp(inbox: Partial<InboxOptions> = {}) {
  const { receiver, clock, errors } = setUpInbox({ groupBy, retries: [1_000], ...inbox })
  const running = new Map<string, PromiseWithResolvers<void>>()
  receiver.on('track', async ({ messageId = '' }) => {
    const held = Promise.withResolvers<void>()
    running.set(messageId, held)
    await held.promise.finally(() => running.delete(messageId))
  })
  receiver.start()
  return {
    errors,
    receiver,
    clock,
    running: () => [...running.keys()],
    async send(messageId: string, userId: string): Promise<void> {
      expect((await deliver(receiver, track(messageId, userId))).status).toBe(200)
      await clock.advance(0)
    },
    async end(messageId: string, error?: Error): Promise<void> {
      if (error === undefined) running.get(messageId)?.resolve()
      else running.get(messageId)?.reject(error)
      await clock.advance(0)
    },
  }
}

describe('messages of one group', () => {
  it('are handled one at a time, beside those of other groups', async () => {
    const { send, end, running } = setUp()
    for (const id of ['a1', 'a2', 'b1']) await send(id, id.slice(0, 1))
    expect(running()).toEqual(['a1', 'b1'])
    await end('a1')
    expect(running()).toEqual(['b1', 'a2'])
  })

  it.each(['', null, undefined])('are none when groupBy returns %j', async (group) => {
    const { send, running } = setUp({ groupBy: () => group })
    for (const id of ['a1', 'a2']) await send(id, 'a')
    expect(running()).toEqual(['a1', 'a2'])
  })

  it('are those of a visitor, whose userId is empty, and of a user, whose id is a number', async () => {
    const clock = manualClock()
    const push = vi.fn(async () => undefined)
    const receiver = createReceiver({ secret, inbox: { queue: { ...memoryQueue({ clock }), push }, groupBy }, clock })
    await deliver(receiver, { ...fixtures.track, userId: '', anonymousId: 'a-1' })
    await deliver(receiver, { ...fixtures.track, userId: 815 })
    expect(push).toHaveBeenNthCalledWith(1, [expect.objectContaining({ group: 'a-1' })])
    expect(push).toHaveBeenNthCalledWith(2, [expect.objectContaining({ group: '815' })])
  })

  it('are those of one source', async () => {
    const clock = manualClock()
    const push = vi.fn(async () => undefined)
    const inbox = { queue: { ...memoryQueue({ clock }), push }, groupBy }
    const receiver = createReceiver({ secret: { source: () => 'shop', secrets: () => secret }, inbox, clock })
    await deliver(receiver, track('a1', 'a'))
    expect(push).toHaveBeenCalledWith([expect.objectContaining({ group: '["shop","a"]' })])
  })
})

it('a destination posts messages of one group one at a time, and in order, also when one fails', async () => {
  const { clock, captured, destination } = setUpDestination([500, 200, 200], { groupBy })
  await destination.send(track('a1', 'a'))
  await destination.send(track('a2', 'a'))
  await clock.advance(0)
  const posted = () => captured.messages.map((message) => message.messageId)
  expect(posted()).toEqual(['a1'])
  await clock.advance(10 * 60_000)
  expect(posted()).toEqual(['a1', 'a1', 'a2'])
})

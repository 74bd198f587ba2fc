/** `groupBy` of an inbox and a destination. What each engine promises of groups is in its contract. */

import { describe, expect, it, vi } from 'vitest'
import type { InboxOptions, Message } from '../../src/index.ts'
import { fixtures } from '../../src/testing.ts'
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

  it('are so again when they are replayed', async () => {
    const { receiver, clock, send, end, running } = setUp({ history: { maxAgeMs: 60_000 } })
    for (const id of ['a1', 'a2']) {
      await send(id, 'a')
      await end(id)
    }
    await receiver.replay()
    await clock.advance(0)
    expect(running()).toEqual(['a1'])
  })

  it.each(['', null, undefined])('are none when groupBy returns %j', async (group) => {
    const { send, running } = setUp({ groupBy: () => group })
    for (const id of ['a1', 'a2']) await send(id, 'a')
    expect(running()).toEqual(['a1', 'a2'])
  })

  it.each([
    ['a visitor, whose userId is empty', { userId: '', anonymousId: 'a-1' }, {}, 'a-1'],
    ['a user, whose id is a number', { userId: 815 }, {}, '815'],
    ['one source', { userId: 'a' }, { secret: { source: () => 'shop', secrets: () => secret } }, '["shop","a"]'],
  ])('are those of %s', async (_whom, ids, options, group) => {
    const push = vi.fn(async () => undefined)
    const { receiver } = setUpInbox({ groupBy }, options, { push })
    await deliver(receiver, { ...fixtures.track, ...ids })
    expect(push).toHaveBeenCalledWith([expect.objectContaining({ group })])
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

/** What start() promises: no stored message is completed before the handlers that it is for are registered. */

import { expect, it, vi } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver } from '../support/receive.ts'

it('start() without a handler is refused; the message stays until it is called with one', async () => {
  const { receiver, clock } = setUpInbox()
  const removed = () => {}
  receiver.on('track', removed).off('track', removed)
  await deliver(receiver, fixtures.track)
  expect(() => receiver.start()).toThrow(/^`start`.*`on`/)
  const handler = vi.fn()
  receiver.on('track', handler)
  await clock.advance(60_000)
  expect(await receiver.health()).toMatchObject({ waiting: 1, active: 0, deadLetters: 0, oldestDueAgeMs: 60_000 })
  expect(handler).not.toHaveBeenCalled()
  receiver.start()
  await clock.advance(0)
  expect(handler).toHaveBeenCalledOnce()
})

it.each([
  ['type', ['page', () => {}], "'page'"],
  ['list of types', [['track', 'page'], () => {}], "'page'"],
  ['event', ['track', 'Order Refunded', () => {}], "'Order Refunded'"],
  ['wildcard', ['*', () => {}], "'*'"],
])(
  'the first handler for a %s is refused after start(): its messages may be completed already',
  (_of, given, found) => {
    const { receiver } = setUpInbox()
    const removed = () => {}
    receiver.on(['track', 'page', '*'], removed).on('track', 'Order Refunded', removed)
    receiver.off('page', removed).off('*', removed).off('track', 'Order Refunded', removed).start()
    receiver.off('page', () => {})
    const on = () => receiver.on(...(given as unknown as Parameters<typeof receiver.on>))
    expect(on).toThrow(TypeError)
    expect(on).toThrow(found)
  },
)

it('the first handlers for an audience are refused after start() as well', () => {
  const { receiver } = setUpInbox()
  receiver.onAudience('Trial Users', { entered: () => {} })
  receiver.onAudience('Both', { entered: () => {} }).onAudience('both', { exited: () => {} })
  receiver.start()
  receiver.onAudience('trial_users', { entered: () => {} })
  receiver.onAudience('both', { entered: () => {}, exited: () => {} })
  const exited = { exited: () => {} }
  expect(() => receiver.onAudience('Trial Users', exited)).toThrow("'Trial Users'")
  expect(() => receiver.onAudience('Trial Users', { entered: () => {}, ...exited })).toThrow("'Trial Users'")
  expect(() => receiver.onAudience('High Value Users', { entered: () => {} })).toThrow("'High Value Users'")
})

it('a handler can be replaced after start(), and one more added for what has one', async () => {
  const { receiver, clock } = setUpInbox()
  const [first, second, spy] = [vi.fn(), vi.fn(), vi.fn()]
  receiver.on('track', first).start()
  receiver.off('track', first).on('track', second).on('track', spy)
  await deliver(receiver, fixtures.track)
  await clock.advance(0)
  expect([first, second, spy].map(({ mock }) => mock.calls.length)).toEqual([0, 1, 1])
})

it('drain() of the queue of an inbox rejects at once before start(), and resolves once the receiver is closed', async () => {
  const { receiver, queue } = setUpInbox()
  await expect(queue.drain()).rejects.toThrow(TypeError)
  await expect(queue.drain()).rejects.toThrow('start()')
  await receiver.close()
  await queue.drain()
})

/** The history of an inbox: messages that were handled are kept, found, and replayed to the handlers. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import type { Handler, HistoryFilter, Receiver } from '../../src/index.ts'
import { inspectQueue, type QueueLog } from '../../src/queues.ts'
import { replay } from '../../src/receive/history.ts'
import { fixtures } from '../../src/testing.ts'
import { listHistory, overTime, setUpInbox } from '../support/inbox.ts'
import { deliver, setUp } from '../support/receive.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const history = { maxAgeMs: 30 * DAY }

async function idsOf(receiver: Receiver, filter?: HistoryFilter): Promise<(string | undefined)[]> {
  return (await listHistory(receiver, filter)).map(({ message }) => message?.messageId)
}

/** Delivers messages of these users and events, an hour apart, each handled. The `messageId` of the first is `0`. */
async function handleMessages(options: Parameters<typeof setUpInbox>[0] = {}) {
  const set = setUpInbox({ history, ...options })
  const { receiver, clock } = set
  const handler = vi.fn<Handler>()
  const messages = [
    { ...fixtures.track, event: 'Order Completed', userId: 'ada' },
    { ...fixtures.track, event: 'Order Refunded', userId: 'bob' },
    { ...fixtures.identify, userId: 'ada' },
    { ...fixtures.page, userId: 'eve' },
    { ...fixtures.track, event: 'Order Completed', userId: 'bob' },
  ].map((message, index) => ({ ...message, messageId: `${index}` }))
  receiver.on(['track', 'identify'], handler)
  receiver.start()
  const startedAt = clock.now()
  for (const message of messages) {
    await deliver(receiver, message)
    await clock.advance(HOUR)
  }
  const replayed = () => handler.mock.calls.slice(4).map(([message]) => message.messageId)
  return { ...set, handler, startedAt, replayed, hoursLater: (hours: number) => new Date(startedAt + hours * HOUR) }
}

describe('the history of an inbox', () => {
  it('has each message that was handled, with its envelope, when it was, and by which handlers', async () => {
    const { receiver, clock } = setUpInbox({ history })
    receiver.on('track', vi.fn(), { name: 'crm' }).on(['track', 'page'], vi.fn(), { name: 'audit' }).on('page', vi.fn())
    receiver.start()
    const at = new Date(clock.now())
    for (const message of [fixtures.track, fixtures.page, fixtures.group]) await deliver(receiver, message)
    await clock.advance(0)
    const [track, page, group, ...others] = await listHistory(receiver)
    expect(others).toEqual([])
    expect(track).toMatchObject({ message: fixtures.track, handledAt: at, receivedAt: at, verified: 'signature' })
    expect(track?.headers['content-type']).toBe('application/json')
    expect(track).toMatchObject({ handlers: ['crm', 'audit'], ignored: false })
    expect(JSON.parse(JSON.stringify(track))).toMatchObject({ bytes: JSON.stringify(fixtures.track) })
    expect([page, group]).toMatchObject([
      { handlers: ['audit', ''], ignored: false },
      { handlers: [], ignored: true },
    ])
    expect(await listHistory(receiver, { handler: 'crm' })).toEqual([track])
    expect(await receiver.replay({ dryRun: true })).toMatchObject({ count: 3 }) // Also what was handled just now.
  })

  it('is empty without the option, and asking for it is refused', async () => {
    const { receiver, clock, memory } = setUpInbox()
    receiver.on('*', vi.fn()).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(0)
    expect(await memory.log?.list()).toEqual([])
    await expect(listHistory(receiver)).rejects.toThrow(/^`history`/)
    await expect(receiver.replay()).rejects.toThrow(/^`replay`/)
  })

  it.each<
    [string, (at: Awaited<ReturnType<typeof handleMessages>>) => HistoryFilter | Promise<HistoryFilter>, string[]]
  >([
    ['nothing', () => ({}), ['0', '1', '2', '3', '4']],
    ['a type', () => ({ type: 'track' }), ['0', '1', '4']],
    ['an event', () => ({ event: 'Order Completed' }), ['0', '4']],
    ['a user', () => ({ userId: 'ada' }), ['0', '2']],
    ['a field', () => ({ where: { messageId: '3' } }), ['3']],
    ['times', ({ hoursLater }) => ({ since: hoursLater(1), until: hoursLater(3) }), ['1', '2']],
    ['a limit of what matches', () => ({ limit: 1, userId: 'bob' }), ['1']],
    ['what none has', () => ({ userId: 'nobody' }), []],
    ['a cursor', async ({ receiver }) => ({ after: (await listHistory(receiver))[2]?.cursor as string }), ['3', '4']],
  ])('is filtered by %s', async (_, filterOf, expected) => {
    const set = await handleMessages()
    expect(await idsOf(set.receiver, await filterOf(set))).toEqual(expected)
  })

  it('is read some at a time', async () => {
    const { receiver, clock, memory } = setUpInbox({ history })
    receiver.on('*', vi.fn()).start()
    for (let index = 0; index < 512; index += 1) await deliver(receiver, { ...fixtures.track, messageId: `${index}` })
    await clock.advance(0)
    const list = vi.spyOn(memory.log as NonNullable<typeof memory.log>, 'list')
    expect((await idsOf(receiver)).length).toBe(512)
    const { length } = list.mock.calls
    expect(length).toBeGreaterThan(1)
    await idsOf(receiver, { limit: 10 })
    expect(list).toHaveBeenCalledTimes(length + 1)
    const signal = AbortSignal.abort(new Error('stopped'))
    await expect(idsOf(receiver, { signal })).rejects.toThrow('stopped')
  })

  it('drops what is older than `maxAgeMs`, exact to a minute', async () => {
    const { receiver, clock } = await handleMessages({ history: { maxAgeMs: 10 * HOUR } })
    await clock.advance(5 * HOUR) // 10 hours after the first.
    expect(await idsOf(receiver)).toEqual(['0', '1', '2', '3', '4'])
    await clock.advance(60_000)
    expect(await idsOf(receiver)).toEqual(['1', '2', '3', '4'])
    await clock.advance(DAY)
    expect(await idsOf(receiver)).toEqual([])
  })

  it('shows what it cannot read as it is', async () => {
    const { memory, queue, clock } = setUpInbox({ history })
    memory.work(async () => ({ complete: true, log: Buffer.from('other bytes') }), { concurrency: 1 })
    await memory.push([{ id: randomUUID(), body: Buffer.from('no envelope') }])
    await memory.drain()
    await clock.advance(1)
    const { receiver } = setUp({ clock, inbox: { queue, history } })
    const expected = { message: undefined, receivedAt: undefined, handlers: [], ignored: false }
    expect(await listHistory(receiver)).toMatchObject([expected])
    const nothing = { id: 'fix-42', count: 0, types: { unreadable: 1 }, events: {}, handlers: {} }
    expect(await receiver.replay({ id: 'fix-42', dryRun: true })).toEqual(nothing)
    expect(await receiver.replay({ id: 'fix-42' })).toEqual(nothing)
    expect(await listHistory(receiver)).toMatchObject([expected])
    expect(await listHistory(receiver, { type: 'track' })).toEqual([])
    expect(await listHistory(receiver, { event: 'Order Completed' })).toEqual([])
  })
})

describe('a replay', () => {
  it('of handlers passes over what is no message', async () => {
    const { receiver: first, memory, queue, clock } = setUpInbox({ history })
    await deliver(first, 'no message')
    memory.work(async () => ({ complete: true, log: new Uint8Array() }), { concurrency: 1 })
    await memory.drain()
    const { receiver } = setUp({ clock, inbox: { queue, history } })
    receiver.on('*', vi.fn(), { name: 'crm' })
    await clock.advance(1)
    expect(await receiver.replay({ handlers: ['crm'] })).toMatchObject({ count: 0, types: {} })
    expect(await receiver.replay({ dryRun: true })).toMatchObject({ count: 1, types: { invalid: 1 } })
  })

  it('gives what matches to the handlers again, who can tell, and counts it', async () => {
    const { receiver, handler, clock, hoursLater, startedAt } = await handleMessages()
    const result = await receiver.replay({ id: 'fix-42', event: 'Order Completed', since: hoursLater(0) })
    expect(result).toMatchObject({ id: 'fix-42', count: 2, types: { track: 2 }, events: { 'Order Completed': 2 } })
    await clock.advance(0)
    const again = handler.mock.calls.slice(4)
    expect(again.map(([{ messageId }, { replay }]) => [messageId, replay])).toEqual([
      ['0', { id: 'fix-42', handledAt: new Date(startedAt) }],
      ['4', { id: 'fix-42', handledAt: hoursLater(4) }],
    ])
    expect(handler.mock.calls[0]?.[1].replay).toBeUndefined()
    expect(new Set(handler.mock.calls.map(([, { id }]) => id)).size).toBe(6) // A copy has one of its own.
    const found = await listHistory(receiver, { event: 'Order Completed' })
    expect(found.map(({ handledAt }) => handledAt)).toEqual([hoursLater(0), hoursLater(4)])
  })

  it('takes what was handled before it began, unless its `until` is later', async () => {
    const { receiver, clock, replayed } = await handleMessages()
    const replaying = receiver.replay()
    await clock.advance(1)
    await deliver(receiver, { ...fixtures.track, messageId: 'new' })
    expect(await overTime(clock, replaying)).toMatchObject({ count: 5 })
    await clock.advance(HOUR)
    expect(replayed().filter((id) => id === 'new')).toHaveLength(1)
    expect(await receiver.replay({ until: new Date(clock.now() + DAY) })).toMatchObject({ count: 6 })
  })

  it('of some ids replays those', async () => {
    const { receiver, replayed, clock, hoursLater } = await handleMessages()
    const [first, , third] = await listHistory(receiver)
    const ids = [third?.id ?? '', first?.id ?? '', randomUUID()]
    expect((await receiver.replay({ ids })).count).toBe(2)
    await clock.advance(0)
    expect(replayed()).toEqual(['0', '2'])
    await clock.advance(1)
    expect((await receiver.replay({ ids, type: 'identify', id: 'two' })).count).toBe(1)
    expect((await receiver.replay({ ids, until: new Date(clock.now() - DAY), id: 'three' })).count).toBe(0)
    expect((await receiver.replay({ ids, since: hoursLater(1), id: 'four' })).count).toBe(1)
  })

  it('of one id gives each message once, within the dedupe window', async () => {
    const { receiver, replayed, clock } = await handleMessages()
    await receiver.replay({ id: 'fix-42', type: 'track' })
    await clock.advance(HOUR)
    await deliver(receiver, { ...fixtures.track, messageId: 'new' })
    await clock.advance(HOUR)
    expect(await receiver.replay({ id: 'fix-42', type: 'track' })).toMatchObject({ count: 1 })
    await clock.advance(HOUR)
    expect(replayed()).toEqual(['0', '1', '4', 'new', 'new'])
    expect(await receiver.replay({ id: 'fix-43', type: 'track' })).toMatchObject({ count: 4 })
    await clock.advance(DAY)
    expect(await receiver.replay({ id: 'fix-42', type: 'track' })).toMatchObject({ count: 4 })
  })

  it('goes on where it was stopped', async () => {
    const { receiver, clock } = setUpInbox({ history })
    const handler = vi.fn<Handler>()
    receiver.on('*', handler).start()
    for (let index = 0; index < 250; index += 1) await deliver(receiver, { ...fixtures.track, messageId: `${index}` })
    await clock.advance(HOUR)
    const stop = new AbortController()
    const first = receiver.replay({ id: 'fix-42', maxPerSecond: 100, signal: stop.signal })
    await vi.waitFor(() => expect(handler).toHaveBeenCalledTimes(350))
    stop.abort(new Error('stopped'))
    await expect(first).rejects.toThrow('stopped')
    expect(await overTime(clock, receiver.replay({ id: 'fix-42' }))).toMatchObject({ count: 150 })
    const again = handler.mock.calls.slice(250).map(([{ messageId }]) => messageId)
    expect([again.length, new Set(again).size]).toEqual([250, 250])
    await expect(receiver.replay({ signal: stop.signal, until: new Date(0) })).rejects.toThrow('stopped')
  })

  it('of handlers runs those alone, for the messages that they match', async () => {
    const { receiver, clock } = setUpInbox({ history })
    const [mail, crm, audit] = [vi.fn(), vi.fn(), vi.fn()]
    receiver.on('track', mail, { name: 'mail' }).on('track', 'Order Completed', crm, { name: 'crm' }).on('*', audit)
    receiver.start()
    await deliver(receiver, { ...fixtures.track, event: 'Order Completed' })
    await deliver(receiver, { ...fixtures.track, event: 'Order Refunded' })
    await deliver(receiver, 'no message')
    await clock.advance(HOUR)
    const { count, handlers } = await receiver.replay({ handlers: ['crm'], id: 'fix-42' })
    expect([count, handlers]).toEqual([1, { mail: 1, crm: 1 }])
    await clock.advance(0)
    expect([mail, crm, audit].map(({ mock }) => mock.calls.length)).toEqual([2, 2, 2])
    expect((await listHistory(receiver)).map(({ handlers }) => handlers)).toEqual([
      ['mail', 'crm', ''],
      ['mail', ''],
    ])
  })

  it('of handlers that fail is retried, and redriven, with those alone', async () => {
    const { receiver, clock } = setUpInbox({ history, retries: [1_000] })
    const [mail, crm] = [vi.fn(), vi.fn<Handler>()]
    receiver.on('track', mail, { name: 'mail' }).on('track', crm, { name: 'crm' }).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(HOUR)
    crm.mockRejectedValue(new Error('no'))
    await receiver.replay({ handlers: ['crm'], id: 'fix-42' })
    await clock.advance(HOUR)
    expect(await receiver.deadLetters()).toMatchObject([{ attempts: 2, handlers: { failed: ['crm'], done: [] } }])
    crm.mockResolvedValue(undefined)
    await receiver.redrive('all')
    await clock.advance(0)
    expect([mail, crm].map(({ mock }) => mock.calls.length)).toEqual([1, 4])
    expect(crm.mock.calls.at(-1)?.[1].replay).toEqual({ id: 'fix-42', handledAt: expect.any(Date), handlers: ['crm'] })
    expect(await listHistory(receiver)).toMatchObject([{ handlers: ['mail', 'crm'] }])
  })

  it('counts what it would do by type, event and handler, and changes nothing', async () => {
    const { receiver, clock, handler } = await handleMessages()
    const result = await receiver.replay({ id: 'fix-42', dryRun: true, onProgress: () => expect.fail() })
    const events = { 'Order Completed': 2, 'Order Refunded': 1 }
    const types = { track: 3, identify: 1, page: 1 }
    expect(result).toEqual({ id: 'fix-42', count: 5, types, events, handlers: {} })
    await clock.advance(0)
    expect(handler).toHaveBeenCalledTimes(4)
    expect(await receiver.replay({ id: 'fix-42', type: 'page' })).toMatchObject({ count: 1 })
  })

  it('waits while messages are late, and new ones go before the rest of it', async () => {
    const { receiver, clock } = setUpInbox({ history, concurrency: 1 })
    const seen: string[] = []
    receiver.on('*', async ({ messageId }) => {
      seen.push(messageId as string)
      await new Promise((resolve) => clock.setTimeout(() => resolve(undefined), 10))
    })
    receiver.start()
    for (let index = 0; index < 300; index += 1) await deliver(receiver, { ...fixtures.track, messageId: `${index}` })
    await clock.advance(HOUR)
    const begun = Promise.withResolvers()
    const progress: number[] = []
    const onProgress = (count: number) => progress.push(count) === 2 && begun.resolve(count)
    const replaying = receiver.replay({ id: 'fix-42', onProgress })
    await overTime(clock, begun.promise)
    await clock.advance(500)
    await deliver(receiver, { ...fixtures.track, messageId: 'new' })
    expect(await overTime(clock, replaying)).toMatchObject({ count: 300 })
    expect(progress).toEqual([100, 200, 300])
    await clock.advance(HOUR)
    expect(seen.length).toBe(601)
    expect(seen.slice(300).indexOf('new')).toBe(200)
  })

  it('takes a message for late after 250 ms, and waits while 1000 more wait than before', async () => {
    const { memory, clock } = await handleMessages()
    const none = { waiting: 0, active: 0, deadLetters: 0, retrying: 0, oldestDueAt: undefined, asOf: new Date(0) }
    const due = (asOf: number, since: number) => ({ ...none, asOf: new Date(asOf), oldestDueAt: new Date(since) })
    const more = (waiting: number) => ({ ...none, waiting })
    const answers = [none, due(1, 1), due(252, 2), due(251, 2), more(1_000), more(999)]
    const steps: string[] = []
    const step = <T>(name: string, result: T) => steps.push(name) && Promise.resolve(result)
    const queue = { counts: () => step('count', answers.shift() ?? none), push: () => step('push', []) }
    const log = memory.log as QueueLog
    await overTime(clock, replay({ queue: queue as never, log, clock }, { type: 'track', maxPerSecond: 1 }))
    const late = ['count', 'count', 'count', 'push']
    expect(steps).toEqual(['count', 'push', ...late, 'count', 'count', 'push'])
  })

  it('does not bring back who is forgotten meanwhile', async () => {
    const { receiver, clock, replayed } = await handleMessages()
    const replaying = receiver.replay({ maxPerSecond: 1 })
    await clock.advance(500)
    expect(await receiver.forget('bob')).toEqual({ deleted: 2, active: 0 })
    expect(await overTime(clock, replaying)).toMatchObject({ count: 3 })
    await clock.advance(HOUR)
    expect(replayed()).toEqual(['0', '2'])
  })

  it('of a handler that the process that handles it does not have fails, until one has it', async () => {
    const { receiver, clock, memory } = await handleMessages({ retries: [] })
    const ids = [(await listHistory(receiver))[0]?.id ?? '']
    await inspectQueue(memory, { clock }).replay({ id: 'fix-42', handlers: ['crm'], ids })
    await clock.advance(0)
    const [letter] = await receiver.deadLetters({ handler: 'crm' })
    expect(letter?.error.message).toContain("'crm'")
    const crm = vi.fn<Handler>()
    receiver.on('track', crm, { name: 'crm' })
    await receiver.redrive('all')
    await clock.advance(0)
    expect(crm.mock.calls).toMatchObject([[{ messageId: '0' }, { replay: { id: 'fix-42' } }]])
    expect(await listHistory(receiver)).toHaveLength(5)
  })
})

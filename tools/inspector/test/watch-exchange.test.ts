/** What an inspector keeps of messages that are handled at once, of users who are forgotten meanwhile, and of more than it can keep. */

import { createReceiver, type ReceiverOptions } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { fixtures, manualClock, signedRequest } from 'hookline/testing'
import { expect, it } from 'vitest'
import { hostRequest } from '../../../test/support/receive.ts'
import { until } from '../../../test/support/until.ts'
import type { KeepOptions } from '../src/index.ts'
import { watchReceiver } from '../src/watch-receiver.ts'
import { keptBy, pause } from './support.ts'

const secret = 'inspected'

function setUp(options: Partial<ReceiverOptions> = {}, keep?: KeepOptions) {
  const clock = manualClock()
  const { detail, ...kept } = keptBy(clock, keep)
  const receiver = createReceiver({ secret, clock, onError: () => {}, ...options })
  watchReceiver('shop', receiver, kept.journal, kept.series)
  const send = (message: object, headers: Record<string, string | string[]> = {}, signedWith = secret) => {
    const request = signedRequest(JSON.stringify(message), signedWith)
    return receiver.receive(Buffer.from(request.body), { ...request.headers, ...headers })
  }
  return { clock, receiver, send, ...kept, detail: () => detail() }
}

const track = (index: number | string, more = {}) => ({ ...fixtures.track, messageId: `message-${index}`, ...more })

it.each([
  ['a name that is not Latin-1', track(1, { event: '注文 ✓' }), {}],
  ['a header with several values', track(1), { via: ['one', 'two'] }],
])('keeps %s', async (_, message, headers) => {
  const { receiver, send, detail } = setUp()
  receiver.on('track', function save() {})
  await send(message, headers)
  const { row, body, request, steps = [] } = detail() ?? {}
  expect(row).toMatchObject({ state: 'done', type: 'track', name: message.event, user: message.userId, attempts: 1 })
  expect(body?.text).toBe(JSON.stringify(message))
  for (const [name, value] of Object.entries(headers)) {
    for (const each of [value].flat()) expect(request?.headers).toContainEqual([name, each])
  }
  expect(steps.map(({ what }) => what)).toEqual(['arrived', 'checked', 'handled', 'answered'])
  expect(steps[2]).toMatchObject({ runs: [{ on: 'track', name: 'save' }] })
})

it('several handlers are several runs, whatever their names are; the plots count the message once', async () => {
  const { receiver, send, detail, counts, clock } = setUp()
  const named = Object.defineProperty(() => {}, 'name', { value: 12_345 })
  receiver.on('track', named).on('*', function two() {
    return pause(clock, 40)
  })

  const answered = send(track(1), { authorization: 'Basic c2VjcmV0', 'x-last': 'last' })
  await clock.advance(40)
  await answered

  expect(detail()?.steps[2]).toMatchObject({
    at: (detail()?.row.at ?? 0) + 40,
    durationMs: 40,
    runs: [
      { on: 'track', name: '12345' },
      { on: '*', name: 'two', durationMs: 40 },
    ],
  })
  const hidden = ['authorization', 'x-last'].map((name) => [name, null])
  expect(detail()?.request?.headers.slice(-2)).toEqual(hidden)
  expect(counts('shop')).toEqual([1, 0])
})

it.each([undefined, 'inbox'])('a message that no handler matches is ignored, and in no plot: %s', async (inbox) => {
  const { receiver, send, detail, clock, counts } = setUp(inbox === undefined ? {} : { inbox: memoryQueue() })
  receiver.on('page', () => {})
  if (inbox !== undefined) receiver.start()
  await send(track(1))
  await clock.advance(0)
  await until(() => detail()?.row.state !== 'waiting')
  expect(detail()?.row.state).toBe('ignored')
  expect(detail()?.steps.map(({ what }) => what)).toContain('ignored')
  expect(counts('shop')).toEqual([0, 0])
  await send(track(1))
  expect(detail()?.row.state).toBe('ignored')
})

it('a refused message keeps its type, which only the first bytes may name', async () => {
  const { send, rows } = setUp()
  const filler = { filler: 'x'.repeat(20_000) }

  for (const message of [track(1), track(2, { type: 'strange' }), { ...filler, ...track(3) }]) {
    await send(message, {}, 'another')
  }

  const types = rows().map(({ state, type }) => `${state} ${type}`)
  expect(types.sort()).toEqual(['refused track', 'refused undefined', 'refused undefined'])
})

it('a sender repeats what failed, and then what is done: one row, whose last arrival is a copy', async () => {
  const { receiver, send, rows, detail } = setUp()
  let isBroken = true
  receiver.on('track', () => {
    if (isBroken) throw new Error('broken')
  })

  await send(track(1))
  expect(rows()).toMatchObject([{ state: 'failed', status: 500, code: 'handler_failed', attempts: 1 }])

  isBroken = false
  for (let index = 0; index < 2; index += 1) await send(track(1), { 'x-request-id': String(index) })
  expect(rows()).toMatchObject([{ state: 'done', status: 200, attempts: 3 }])
  expect(rows()[0]?.code).toBeUndefined()
  expect(detail()?.steps.filter(({ what }) => ['arrived', 'failed', 'handled'].includes(what))).toMatchObject([
    { what: 'arrived', isCopy: false },
    { what: 'failed', attempt: 1, next: 'sender', runs: [{ error: { code: 'Error', message: 'broken' } }] },
    { what: 'arrived', isCopy: true },
    { what: 'handled', attempt: 2 },
    { what: 'arrived', isCopy: true },
    { what: 'handled', attempt: 3 },
  ])
  expect(detail()?.request?.headers).toContainEqual(['x-request-id', '1'])
})

it('of a batch each element is a row, the refused one, too', async () => {
  const { receiver, send, rows } = setUp({ batches: true })
  receiver.on('track', () => {})

  await send([track(1), { ...track(2), type: 'unknown' }, track(3)])

  expect(rows().map(({ state, attempts, code }) => [state, attempts, code])).toEqual([
    ['refused', 0, 'message_type_unknown'],
    ['done', 1, undefined],
    ['done', 1, undefined],
  ])
})

it('a request that is refused is shown with its path, and explained with it', async () => {
  const { receiver, detail, rows, journal } = setUp()

  await receiver.handle(hostRequest({ path: '/webhooks/shop' })) // Signed with another secret.

  const row = { state: 'refused', status: 401, code: 'signature_mismatch', isRefused: true }
  const request = { method: 'POST', path: '/webhooks/shop', remoteAddress: '192.0.2.1' }
  expect(detail()).toMatchObject({ canExplain: true, row, request })
  const { path, bytes = [] } = journal.refused(rows()[0]?.id ?? 0) ?? {}
  expect([path, Buffer.from(bytes).toString()]).toEqual(['/webhooks/shop', JSON.stringify(fixtures.track)])
})

it('a user who is forgotten while a handler runs does not come back; a later message does', async () => {
  const { receiver, send, rows, journal, clock } = setUp()
  receiver.on('track', () => pause(clock, 100))
  const answered = Promise.all([send(track(1, { userId: 'gone' })), send(track(2, { userId: 'stays' }))])
  await clock.advance(50)
  journal.forget('gone')
  await clock.advance(50)
  await answered
  expect(rows().map(({ user }) => user)).toEqual(['stays'])
  const later = send(track(3, { userId: 'gone' }))
  await clock.advance(100)
  await later
  expect(rows().map(({ user }) => user)).toEqual(['gone', 'stays'])
})

it('an attempt of an inbox that ends after its user was forgotten brings nothing back', async () => {
  const { receiver, send, rows, clock } = setUp({ inbox: memoryQueue() })
  let isHandling = false
  receiver.on('track', () => {
    isHandling = true
    return pause(clock, 100)
  })
  receiver.start()
  await send(track(1, { userId: 'gone' }))
  await until(() => isHandling)
  await receiver.forget('gone')
  expect(rows()).toEqual([])
  await clock.advance(100)
  await receiver.close({ graceMs: 1_000 })
  expect(rows()).toEqual([])
})

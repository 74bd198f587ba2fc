import { inspect } from 'node:util'
import { expect, it, vi } from 'vitest'
import { type Delivery, HooklineError, type Receiver, type ReceiverObserver } from '../../src/index.ts'
import type { Queue } from '../../src/queues.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { setUpBatches, track } from '../support/batches.ts'
import { hear } from '../support/channel.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, hostRequest, schemaOf, setUp, watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

type Seen = readonly [name: string, event: Readonly<Record<string, unknown>> & { readonly delivery: Delivery }]

function observe(receiver: Receiver) {
  const events: Seen[] = []
  const note = (name: string) => (event: object) => void events.push([name, { ...event } as Seen[1]])
  const names = ['answered', 'stored', 'handled', 'ignored', 'failed'] as const
  const observer: ReceiverObserver = Object.fromEntries(names.map((name) => [name, note(name)]))
  return { events, stop: receiver.observe(observer) }
}

const bytesOf = (message: unknown) => Buffer.from(JSON.stringify(message))
const fail = throwing('no')
const wait = (clock: { setTimeout(callback: () => void, ms: number): unknown }, ms: number) =>
  new Promise<void>((resolve) => clock.setTimeout(resolve, ms))

it('inline: each run in the order of their ends, then the answer; channels have all but the answer', async () => {
  const published = [hear('hookline:received'), hear('hookline:handled')]
  const { receiver, clock } = setUp()
  receiver.on('*', async function slow() {
    await wait(clock, 70)
  })
  receiver.on(['track', 'page'], function save() {})
  receiver.on('track', 'Order Completed', () => wait(clock, 30))
  const { events } = observe(receiver)
  const received = deliver(receiver, fixtures.track)
  await clock.advance(70)
  await received
  const delivery = { bytes: bytesOf(fixtures.track), verified: 'signature', secretIndex: 0 }
  const runs = [
    { on: 'track', name: 'save', durationMs: 0, error: undefined },
    { on: 'track Order Completed', name: '', durationMs: 30, error: undefined },
    { on: '*', name: 'slow', durationMs: 70, error: undefined },
  ]
  expect(events).toMatchObject([
    ['handled', { message: fixtures.track, delivery, attempt: 1, durationMs: 70, runs, isStored: false }],
    ['answered', { message: fixtures.track, delivery, status: 200, error: undefined, durationMs: 70, elements: [] }],
  ])
  expect(published).toMatchObject([[{ message: fixtures.track, delivery }], [events[0]?.[1]]])
})

it('a failure is measured for a subscriber of failures alone', async () => {
  const failed = hear('hookline:failed')
  const { receiver, clock } = setUp()
  receiver.on('track', () => wait(clock, 30).then(fail))
  void deliver(receiver, fixtures.track)
  await clock.advance(30)
  expect(failed).toMatchObject([{ durationMs: 30, runs: [{ durationMs: 30 }] }])
})

it('inline: what each handler threw, whatever it is', async () => {
  const { receiver } = setUp({ events: { 'Order Completed': schemaOf(() => ({ value: { total: 1 } })) } })
  const message = { ...fixtures.track, properties: { total: 1 } }
  const failure = new Error('no')
  receiver.on('track', throwing(failure))
  for (const thrown of [failure, undefined]) receiver.on('track', () => Promise.reject(thrown))
  receiver.on('track', () => {})
  const { events } = observe(receiver)
  await deliver(receiver, fixtures.track)
  const error = { code: 'handler_failed' }
  expect(events).toMatchObject([
    ['failed', { message, attempt: 1, error, next: 'sender', isStored: false }],
    ['answered', { message, status: 500, error }],
  ])
  const runs = events[0]?.[1].runs as { error?: unknown }[]
  const thrown = [failure, undefined, failure, new Error('a thrown undefined')]
  expect(runs.map((run) => run.error)).toEqual(thrown)
})

it('every refusal, with its bytes as far as they were read; those may be forged, so that channels have none', async () => {
  const [refused, received, failed] = [hear('hookline:refused'), hear('hookline:received'), hear('hookline:failed')]
  const { receiver, clock } = setUp()
  const { events } = observe(receiver)
  const forged = hostRequest({ headers: signedRequest(fixtures.track, 'a guess').headers })
  const tooLarge = new HooklineError('body_too_large', 'no')
  await receiver.handle(hostRequest({ method: 'GET' }))
  await receiver.handle(hostRequest({ readBody: () => Promise.reject(tooLarge) }))
  await receiver.handle(forged)
  await receiver.handle(hostRequest({}, '{'))
  const late = receiver.handle(hostRequest({ readBody: () => new Promise(() => {}) }))
  await clock.advance(4500)
  await late
  await receiver.close()
  await receiver.handle(hostRequest())
  const seen = events.map(([name, { status, error, delivery, message }]) => {
    expect([name, message]).toEqual(['answered', undefined])
    const { bytes, verified } = delivery as { bytes: Uint8Array; verified: Delivery['verified'] }
    return [status, (error as HooklineError).code, Buffer.from(bytes).toString(), verified]
  })
  expect(seen).toEqual([
    [405, 'method_not_allowed', '', false],
    [413, 'body_too_large', '', false],
    [401, 'signature_mismatch', JSON.stringify(fixtures.track), false],
    [400, 'body_not_json', '{', 'signature'],
    [503, 'body_timeout', '', false],
    [503, 'shutting_down', '', false],
  ])
  const request = { method: 'POST', path: '/webhooks', remoteAddress: '192.0.2.1', headers: forged.headers }
  expect(events[2]?.[1].request).toEqual(request)
  expect(events.map(([, { durationMs }]) => durationMs)).toEqual([0, 0, 0, 0, 4500, 0])
  expect(refused).toEqual(events.map(([, { error }]) => ({ error, request: expect.any(Object) })))
  expect([received, failed]).toEqual([[], []])
  expect(inspect(refused, { depth: 9 })).not.toContain('<Buffer')
})

it('with an inbox: stored, then handled or failed, a delivery and its dead letter by one id', async () => {
  const { receiver, clock, memory } = setUpInbox({ retries: [1000] })
  receiver.on('page', function save() {})
  receiver.on('track', fail)
  const { events } = observe(receiver)
  await deliver(receiver, fixtures.page)
  const id = events[0]?.[1].delivery.id
  expect(id).toMatch(/^[0-9a-f-]{36}$/)
  expect(events).toMatchObject([
    ['stored', { message: fixtures.page, durationMs: 0, delivery: { bytes: bytesOf(fixtures.page) } }],
    ['answered', { message: fixtures.page, status: 200, error: undefined }],
  ])
  receiver.start()
  await clock.advance(0)
  const runs = [{ on: 'page', name: 'save', error: undefined }]
  expect(events.slice(2)).toMatchObject([
    ['handled', { message: fixtures.page, attempt: 1, runs, isStored: true, delivery: { id } }],
  ])
  events.length = 0
  await deliver(receiver, fixtures.track)
  await clock.advance(1000)
  const failed = events.filter(([name]) => name === 'failed')
  const retryAt = new Date(clock.now())
  const [letter] = await memory.deadLetters()
  expect(failed).toMatchObject([
    ['failed', { attempt: 1, next: { retryAt }, runs: [{ on: 'track', error: new Error('no') }] }],
    ['failed', { attempt: 2, next: 'dead_letter', runs: [{ on: 'track' }] }],
  ])
  expect(failed.map(([, { delivery }]) => delivery.id)).toEqual([letter?.id, letter?.id])
  await deliver(receiver, fixtures.group)
  await clock.advance(0)
  const ignored = { message: fixtures.group, delivery: { bytes: bytesOf(fixtures.group) }, isStored: true }
  expect(events.filter(([name]) => name === 'ignored')).toMatchObject([['ignored', ignored]])
})

it('with an inbox: an invalid message is stored, answered 200 with its error, and a dead letter', async () => {
  const { receiver, clock, queue, memory } = setUpInbox()
  const push: Queue['push'] = (jobs) => wait(clock, 5).then(() => memory.push(jobs))
  Object.assign(queue, { push })
  receiver.on('*', () => {}).start()
  const { events } = observe(receiver)
  void deliver(receiver, '{}')
  await clock.advance(5)
  const [letter] = await receiver.deadLetters()
  const delivery = { bytes: Buffer.from('{}'), id: letter?.id }
  const error = { code: 'message_invalid' }
  expect(events).toHaveLength(3)
  expect(Object.fromEntries(events)).toMatchObject({
    stored: { message: undefined, delivery, durationMs: 5 },
    answered: { message: undefined, delivery, status: 200, error, durationMs: 5 },
    failed: { message: undefined, delivery, error, next: 'dead_letter', attempt: 1, runs: [], isStored: true },
  })
})

it('with an inbox: a job that its queue cannot read, with the bytes that are stored, also when they are a message', async () => {
  const work = vi.fn<Queue['work']>(() => () => {})
  const [error, dead] = [vi.fn(), vi.fn()]
  const { receiver } = setUpInbox({}, { logger: { error, warn() {}, info() {} } }, { work })
  receiver.on('*', () => {}).start()
  const { events } = observe(receiver)
  receiver.observe({ dead })
  const body = bytesOf(fixtures.page)
  const letter = { id: 'the id', body, reason: 'no job', retryState: undefined, failedAt: new Date(7) }
  work.mock.calls[0]?.[1].onUnreadable?.(letter)
  const known = { id: 'the id', headers: {}, bytes: body, verified: false }
  const delivery = { ...known, method: 'POST', bodySource: 'argument', receivedAt: new Date(7) }
  expect(events).toMatchObject([
    ['failed', { delivery, error: { code: 'internal' }, next: 'dead_letter', attempt: 0, runs: [], isStored: true }],
  ])
  const why = { reason: 'unreadable', error: { code: 'internal', message: 'no job', causes: [] } }
  expect(dead.mock.calls).toEqual([[{ ...known, ...why, attempts: 0, failedAt: new Date(7) }]])
  expect(error.mock.calls).toMatchObject([
    [{ code: 'dead_letter', id: 'the id', reason: 'unreadable' }, expect.anything()],
  ])
})

it('a batch: each element is handled or fails, then one answer', async () => {
  const { receiver, handler, ...set } = setUpBatches('inline')
  handler.run = ({ userId }) => userId === 'b' && fail()
  const { events } = observe(receiver)
  const messages = [{ type: 'track' }, track('a'), track('b')]
  await set.post(messages)
  const elements = messages.map((message) => ({ bytes: bytesOf(message), verified: 'signature' }))
  expect(events).toMatchObject([
    ['handled', { message: messages[1], delivery: elements[1], runs: [{ on: '*', error: undefined }] }],
    ['failed', { message: messages[2], delivery: elements[2], runs: [{ on: '*', error: new Error('no') }] }],
    [
      'answered',
      {
        message: undefined,
        status: 500,
        error: { code: 'handler_failed' },
        delivery: { bytes: bytesOf(messages) },
        elements: elements.map((delivery, index) => ({ ok: index === 1, delivery })),
      },
    ],
  ])
})

it('several observers, of this receiver alone, until each is removed', async () => {
  const [{ receiver }, other] = [setUp(), setUp()]
  for (const each of [receiver, other.receiver]) each.on('*', () => {})
  const [first, second] = [observe(receiver), observe(receiver)]
  await deliver(receiver, fixtures.track)
  await deliver(other.receiver, fixtures.track)
  first.stop()
  await deliver(receiver, fixtures.page)
  first.stop()
  second.stop()
  await deliver(receiver, fixtures.page)
  expect([first.events.length, second.events.length]).toEqual([2, 4])
})

it('one that throws or rejects is a process warning, at most five a minute, and changes nothing', async () => {
  const emitted = watchWarnings().mock.calls
  const { receiver, errors } = setUp()
  receiver.observe({ answered: fail, handled: () => Promise.reject(new Error('later')) } as ReceiverObserver)
  const { events } = observe(receiver)
  receiver.on('*', () => {})
  for (let count = 0; count < 4; count++) expect(await receiver.handle(hostRequest())).toMatchObject({ ok: true })
  expect(events).toHaveLength(8)
  expect(errors).toEqual([])
  expect(emitted).toHaveLength(5)
  expect(emitted).toContainEqual([expect.any(String), { code: 'HOOKLINE_OBSERVER', detail: 'no' }])
})

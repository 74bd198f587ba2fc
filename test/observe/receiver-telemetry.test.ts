import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { expect, it, onTestFinished } from 'vitest'
import { observe } from '../../src/otel.ts'
import { idOfDigest } from '../../src/protocol/id.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { secret, setUp as setUpReceiver, watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'
import { count, setUpTelemetry } from './telemetry.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const traced = { traceparent: `00-${TRACE}-${PARENT}-01` }

function setUp(options: Parameters<typeof setUpReceiver>[0] = {}) {
  const telemetry = setUpTelemetry()
  onTestFinished(observe())
  const { receiver, clock } = setUpReceiver(options)
  const deliver = (message: object, headers: Record<string, string> = {}, key = secret) => {
    const request = signedRequest(JSON.stringify(message), key)
    return receiver.receive(Buffer.from(request.body), { ...request.headers, ...headers })
  }
  return { ...telemetry, receiver, clock, deliver }
}

const track = {
  'messaging.system': 'hookline',
  'messaging.operation.name': 'process',
  'messaging.destination.name': 'track',
}

it('a message that is handled is a span of its consumer', async () => {
  const { receiver, clock, deliver, spans } = setUp()
  const done = Promise.withResolvers<void>()
  receiver.on('track', () => done.promise)
  const answer = deliver(fixtures.track, traced)
  await clock.advance(250)
  done.resolve()
  await answer

  const [span, ...others] = spans()
  expect(others).toEqual([])
  expect(span).toMatchObject({
    name: 'process track',
    kind: SpanKind.CONSUMER,
    status: { code: SpanStatusCode.UNSET },
    parentSpanContext: { traceId: TRACE, spanId: PARENT, isRemote: true },
    links: [],
  })
  expect(span?.spanContext().traceId).toBe(TRACE)
  expect(Math.abs((span?.endTime[0] ?? 0) - Date.now() / 1000)).toBeLessThan(60)
  expect(span?.attributes).toEqual({
    ...track,
    'messaging.operation.type': 'process',
    'messaging.message.id': idOfDigest(signedRequest(JSON.stringify(fixtures.track), secret).headers['x-signature']),
    'hookline.message.event': fixtures.track.event,
    'hookline.attempt': 1,
  })
})

it('says nothing of users, bodies and headers', async () => {
  const { receiver, deliver, spans, collect } = setUp()
  receiver.on('identify', throwing('no place for user-private'))
  await deliver(
    { type: 'identify', userId: 'user-private', traits: { email: 'private@x.example' } },
    { cookie: 'private' },
  )
  const said = JSON.stringify([
    spans().map(({ name, attributes, status, events, links }) => ({ name, attributes, status, events, links })),
    [...(await collect())],
  ])
  expect(said).toContain('handler_failed')
  expect(said).not.toContain('private')
})

it('handlers that fail are an error, by its code', async () => {
  const { receiver, deliver, spans, collect } = setUp()
  receiver.on('track', throwing('boom'))
  await deliver(fixtures.track)

  expect(spans()).toMatchObject([
    {
      name: 'process track',
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'error.type': 'handler_failed', 'hookline.next': 'sender', 'hookline.attempt': 1 },
    },
  ])
  const metrics = await collect()
  const failed = { ...track, 'error.type': 'handler_failed' }
  expect(count(metrics.get('hookline.receiver.failed'))).toEqual([[{ ...failed, 'hookline.next': 'sender' }, 1]])
  expect(metrics.get('messaging.process.duration')).toMatchObject([{ attributes: failed, value: { count: 1 } }])
  expect(metrics.has('hookline.receiver.handled')).toBe(false)
})

it('counts what is received, handled, ignored and refused', async () => {
  const { clock, receiver, deliver, spans, collect } = setUp()
  receiver.on('page', () => new Promise((resolve) => clock.setTimeout(() => resolve(undefined), 500)))
  const pages = [deliver(fixtures.page), deliver({ ...fixtures.page, name: 'Other' })]
  await clock.advance(500)
  await Promise.all(pages)
  await deliver(fixtures.track)
  await deliver(fixtures.track, {}, 'a guess')
  await deliver({ type: 'page' })
  const metrics = await collect()
  const page = { ...track, 'messaging.destination.name': 'page' }

  expect(count(metrics.get('messaging.client.consumed.messages'))).toEqual([
    [page, 2],
    [track, 1],
  ])
  expect(count(metrics.get('hookline.receiver.handled'))).toEqual([[page, 2]])
  expect(count(metrics.get('hookline.receiver.ignored'))).toEqual([[track, 1]])
  expect(count(metrics.get('hookline.receiver.refused'))).toEqual([
    [{ 'error.type': 'signature_mismatch', 'http.response.status_code': 401 }, 1],
    [{ 'error.type': 'message_invalid', 'http.response.status_code': 422 }, 1],
  ])
  expect(metrics.get('messaging.process.duration')).toMatchObject([{ attributes: page, value: { count: 2, sum: 1 } }])
  expect(spans()).toHaveLength(2)
})

it('counts messages whose event has no schema, without the name of the event', async () => {
  const { deliver, collect } = setUp({ events: {} })
  for (const event of ['One', 'Two']) await deliver({ ...fixtures.track, event })
  expect(count((await collect()).get('hookline.receiver.unplanned'))).toEqual([[track, 2]])
})

it('says that a message is not verified', async () => {
  const { receiver, collect } = setUp({ allowUnsigned: true })
  await receiver.receive(Buffer.from(JSON.stringify(fixtures.track)), { 'content-type': 'application/json' })
  const unverified = { ...track, 'hookline.verified': false }
  expect(count((await collect()).get('hookline.receiver.ignored'))).toEqual([[unverified, 1]])
})

it('through an inbox: stored, and handled later, in the trace of the request', async () => {
  const clock = setUpReceiver().clock
  const queue = memoryQueue({ clock })
  const push = (...args: Parameters<typeof queue.push>) => clock.advance(250).then(() => queue.push(...args))
  const { receiver, deliver, spans, collect } = setUp({ inbox: { ...queue, push }, clock })
  const warnings = watchWarnings()
  let attempts = 0
  receiver.on('track', () => {
    attempts += 1
    if (attempts === 1) throw new Error('not yet')
  })
  await deliver(fixtures.track, traced)
  const attributes = { 'messaging.operation.type': 'send' }
  expect(spans()).toMatchObject([{ name: 'store track', kind: SpanKind.CLIENT, attributes }])
  expect(spans()[0]?.duration[1]).toBeGreaterThanOrEqual(250_000_000)
  receiver.start()
  await clock.advance(60_000)
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })))

  expect(
    spans().map(({ name, attributes }) => [name, attributes['hookline.attempt'], attributes['hookline.next']]),
  ).toEqual([
    ['store track', undefined, undefined],
    ['process track', 1, 'retry'],
    ['process track', 2, undefined],
  ])
  for (const span of spans()) expect(span.parentSpanContext).toMatchObject({ traceId: TRACE, spanId: PARENT })
  const metrics = await collect()
  const stored = { ...track, 'messaging.operation.name': 'store' }
  expect(count(metrics.get('hookline.receiver.stored'))).toEqual([[stored, 1]])
  const seconds = count(metrics.get('hookline.receiver.store.duration'))
  expect(seconds).toMatchObject([[stored, { count: 1, sum: 0.25 }]])
  expect(warnings).not.toHaveBeenCalled()
})

it('a message that fails before its handlers has a span, too', async () => {
  const { clock } = setUpReceiver()
  const { receiver, deliver, spans } = setUp({ inbox: memoryQueue({ clock }), clock })
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })))
  receiver.on('track', () => {}).start()
  await deliver('no message' as never)
  await clock.advance(1_000)
  const attributes = { 'error.type': 'body_not_json', 'hookline.next': 'dead_letter' }
  expect(spans().filter(({ name }) => name === 'process')).toMatchObject([{ attributes }])
})

it('the span of the HTTP server stays the parent when it is of the same trace, and is linked when it is not', async () => {
  const { receiver, deliver, spans } = setUp()
  receiver.on('track', () => {})
  const within = (traceId: string, headers: Record<string, string> = traced) => {
    const server = { traceId, spanId: 'c'.repeat(16), traceFlags: 1 }
    return context.with(trace.setSpanContext(context.active(), server), () => deliver(fixtures.track, headers))
  }
  await within(TRACE)
  await within('d'.repeat(32))
  await within('e'.repeat(32), {})

  const [same, other, untraced] = spans()
  expect(same).toMatchObject({ parentSpanContext: { traceId: TRACE, spanId: 'c'.repeat(16) }, links: [] })
  expect(other).toMatchObject({
    parentSpanContext: { traceId: TRACE, spanId: PARENT },
    links: [{ context: { traceId: 'd'.repeat(32), spanId: 'c'.repeat(16) } }],
  })
  expect(untraced).toMatchObject({ parentSpanContext: { traceId: 'e'.repeat(32), spanId: 'c'.repeat(16) }, links: [] })
})

it.each([{}, { traceparent: 'junk' }, { traceparent: `00-${'0'.repeat(32)}-${PARENT}-01` }])(
  'a delivery of no trace begins one: %j',
  async (headers: Record<string, string>) => {
    const { receiver, deliver, spans } = setUp()
    receiver.on('track', () => {})
    await deliver(fixtures.track, headers)
    expect(spans()[0]?.parentSpanContext).toBeUndefined()
  },
)

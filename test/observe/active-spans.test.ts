/** Spans are active while what they are about runs: what starts meanwhile is inside them. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { expect, it, onTestFinished } from 'vitest'
import { observe } from '../../src/otel.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { HandleEvent } from '../../src/receive/events.ts'
import { createSender } from '../../src/send/create-sender.ts'
import { fixtures, manualClock, startEndpoint } from '../../src/testing.ts'
import { setUp as setUpDestination } from '../send/set-up.ts'
import { deliver, setUp as setUpReceiver } from '../support/receive.ts'
import { setUpTelemetry } from './telemetry.ts'

function setUp(options: Parameters<typeof setUpReceiver>[0] = {}) {
  const { spans } = setUpTelemetry()
  onTestFinished(observe())
  const { receiver, clock } = setUpReceiver(options)
  const named = (name: string) => spans().filter((span) => span.name === name)
  return { receiver, clock, spans, named }
}

/** What an instrumentation of a database does. */
const query = (name: string) => trace.getTracer('database').startSpan(name).end()

const isInside = (child: ReadableSpan | undefined, parent: ReadableSpan | undefined) =>
  expect(child?.parentSpanContext).toEqual(parent?.spanContext())

const within = <T>(traceId: string, run: () => T): T =>
  context.with(trace.setSpanContext(context.active(), { traceId, spanId: traceId.slice(16), traceFlags: 1 }), run)

async function saveOrder() {
  query('at once')
  await nextTurn()
  query('after an await')
  await Promise.resolve().then(() => query('in a callback of a promise'))
}
const QUERIES = ['at once', 'after an await', 'in a callback of a promise']

it('what a handler does is inside its span', async () => {
  const { receiver, spans, named } = setUp()
  receiver.on('track', saveOrder)
  await deliver(receiver, fixtures.track)
  const [process] = named('process track')
  expect(spans()).toHaveLength(4)
  for (const name of QUERIES) isInside(named(name)[0], process)
  expect(spans()[3]).toBe(process) // It ended after them.
})

it('each message of a batch has a span of its own', async () => {
  const { receiver, named } = setUp({ batches: true })
  receiver.on('track', async (message) => {
    await nextTurn()
    query(message.event)
  })

  await deliver(receiver, [{ ...fixtures.track, event: 'one' }, fixtures.page, { ...fixtures.track, event: 'two' }])

  const processes = named('process track')
  expect(processes.map(({ attributes }) => attributes['hookline.message.event'])).toEqual(['one', 'two'])
  isInside(named('one')[0], processes[0])
  isInside(named('two')[0], processes[1])
})

it('the span of an attempt that close ends is an error, after which the message is handled again', async () => {
  const { receiver, clock, named } = setUp({ inbox: memoryQueue({ clock: manualClock() }) })
  const started = Promise.withResolvers<void>()
  receiver.on('track', () => {
    started.resolve()
    return new Promise(() => {})
  })
  receiver.start()

  await deliver(receiver, fixtures.track)
  await started.promise
  await Promise.all([receiver.close({ graceMs: 0 }), clock.advance(1_000)])

  const attributes = { 'error.type': 'shutting_down', 'hookline.next': 'retry', 'hookline.attempt': 1 }
  expect(named('process track')).toMatchObject([{ status: { code: SpanStatusCode.ERROR }, attributes }])
})

it('a message of an inbox is inside neither the request that woke the worker, nor what started it', async () => {
  const clock = manualClock()
  const { receiver, named } = setUp({ inbox: memoryQueue({ clock }), clock })
  onTestFinished(async () => void (await receiver.close({ graceMs: 0 })))
  receiver.on('track', () => {})
  within('9'.repeat(32), () => receiver.start())

  const requests = ['one', 'two'].map((event, index) =>
    within(`${index + 1}`.repeat(32), () => deliver(receiver, { ...fixtures.track, event })),
  )
  await Promise.all(requests)
  await clock.advance(1_000)

  const spans = named('process track')
  expect(spans.map(({ parentSpanContext }) => parentSpanContext)).toEqual([undefined, undefined])
  for (const { links } of spans) expect(links).toMatchObject([{ context: { traceId: '9'.repeat(32) } }])
  expect(spans[0]?.spanContext().traceId).not.toBe(spans[1]?.spanContext().traceId)
})

it('the `around` of an earlier subscriber holds, too', async () => {
  const store = new AsyncLocalStorage<string>()
  const onStart = (event: unknown): void => {
    ;(event as HandleEvent).around = (run) => store.run('theirs', run)
  }
  subscribe('tracing:hookline:handle:start', onStart)
  onTestFinished(() => void unsubscribe('tracing:hookline:handle:start', onStart))
  const { receiver, named } = setUp()
  receiver.on('track', () => query(`${store.getStore()}`))

  await deliver(receiver, fixtures.track)

  isInside(named('theirs')[0], named('process track')[0])
})

it('what an instrumentation of undici makes is inside the attempt of a sender, in the trace of its caller', async () => {
  const { named } = setUp()
  const onRequest = (): void => query('request')
  subscribe('undici:request:create', onRequest)
  onTestFinished(() => void unsubscribe('undici:request:create', onRequest))
  await using endpoint = await startEndpoint()
  const { url } = endpoint
  const sender = createSender({ webhooks: [{ url }], sharedSecret: 'secret' })
  onTestFinished(() => sender.close())

  const traces = ['1', '2', '3'].map((digit) => digit.repeat(32))
  await Promise.all(traces.map((id) => within(id, () => sender.track({ userId: 'u1', event: 'Order Completed' }))))

  const attempts = named('POST')
  expect(attempts.map(({ parentSpanContext }) => parentSpanContext?.traceId)).toEqual(traces)
  for (const [index, request] of named('request').entries()) isInside(request, attempts[index])
  expect(named('request')).toHaveLength(3)
  expect(attempts[0]?.attributes).toEqual({
    'http.request.method': 'POST',
    'http.response.status_code': 200,
    'server.address': '127.0.0.1',
    'server.port': Number(new URL(url).port),
    'url.full': url,
  })
})

it('an attempt of a destination is a trace of its own, wherever its message was queued', async () => {
  const { named } = setUp()
  const { clock, destination } = within('1'.repeat(32), () => setUpDestination())
  await within('2'.repeat(32), () => destination.track({ userId: 'u1', event: 'Order Completed' }))
  await clock.advance(1_000)
  expect(named('POST')).toMatchObject([{ parentSpanContext: undefined }])
})

import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { expect, it, onTestFinished } from 'vitest'
import { observe } from '../../src/otel.ts'
import type { Script } from '../../src/testing.ts'
import { setUp as setUpDestination } from '../send/set-up.ts'
import { count, setUpTelemetry } from './telemetry.ts'

function setUp(script: Script, urls: readonly string[] = ['https://shop.example/webhooks?token=secret']) {
  const telemetry = setUpTelemetry()
  onTestFinished(observe())
  return { ...telemetry, ...setUpDestination(script, { webhooks: urls.map((url) => ({ url })) }) }
}

const attributes = { 'http.request.method': 'POST', 'server.address': 'shop.example', 'server.port': 443 }

it('an attempt is a span of an HTTP client', async () => {
  const { clock, destination, spans, collect } = setUp([{ status: 200, delayMs: 250 }])
  const queued = await destination.track({ userId: 'u1', event: 'Order Completed' })
  await clock.advance(1000)

  expect(spans()).toMatchObject([
    { name: 'POST', kind: SpanKind.CLIENT, status: { code: SpanStatusCode.UNSET }, parentSpanContext: undefined },
  ])
  expect(spans()[0]?.attributes).toEqual({
    ...attributes,
    'http.response.status_code': 200,
    'url.full': 'https://shop.example/webhooks?…',
    'messaging.message.id': (queued as { id: string }).id,
  })
  const metrics = await collect()
  const ok = { ...attributes, 'http.response.status_code': 200 }
  expect(metrics.has('http.client.request.duration')).toBe(false) // Instrumentation of undici records it.
  expect(count(metrics.get('hookline.destination.attempts'))).toEqual([[ok, 1]])
  expect(count(metrics.get('hookline.destination.rounds'))).toEqual([[{ 'hookline.delivery.status': 'delivered' }, 1]])
})

it('attempts that fail are errors: by their status, or by what went wrong; each but the first says how many before', async () => {
  const { clock, destination, spans, collect } = setUp([503, 'reset', 400], ['http://shop.example:8080/webhooks'])
  await destination.track({ userId: 'u1', event: 'Order Completed' })
  await clock.advance(3_600_000)

  expect(spans().map(({ status }) => status.code)).toEqual(Array(3).fill(SpanStatusCode.ERROR))
  expect(spans().map(({ status }) => status.message)).toEqual([undefined, expect.any(String), undefined])
  expect(spans().map(({ attributes }) => attributes)).toMatchObject([
    { 'http.response.status_code': 503, 'error.type': '503', 'server.port': 8080 },
    { 'error.type': 'reset', 'http.request.resend_count': 1 },
    { 'http.response.status_code': 400, 'error.type': '400', 'http.request.resend_count': 2 },
  ])
  expect(spans()[0]?.attributes).not.toHaveProperty('http.request.resend_count')
  expect(spans()[1]?.attributes).not.toHaveProperty('http.response.status_code')
  const metrics = await collect()
  expect(count(metrics.get('hookline.destination.rounds'))).toEqual([
    [{ 'hookline.delivery.status': 'retrying' }, 2],
    [{ 'hookline.delivery.status': 'failed', 'error.type': 'refused' }, 1],
  ])
  const server = { ...attributes, 'server.port': 8080 }
  expect(count(metrics.get('hookline.destination.attempts'))).toEqual([
    [{ ...server, 'http.response.status_code': 503, 'error.type': '503' }, 1],
    [{ ...server, 'error.type': 'reset' }, 1],
    [{ ...server, 'http.response.status_code': 400, 'error.type': '400' }, 1],
  ])
})

it('messages that are not queued are counted, by the reason', async () => {
  const { destination, collect } = setUp([200])
  await destination.track({ userId: 'u1', event: 'E', integrations: { Webhooks: false } })
  destination.disable()
  for (let i = 0; i < 2; i++) await destination.track({ userId: 'u1', event: 'E' })

  expect(count((await collect()).get('hookline.destination.skipped'))).toEqual([
    [{ 'hookline.skip.reason': 'not_selected' }, 1],
    [{ 'hookline.skip.reason': 'switched_off' }, 2],
  ])
})

it('circuits that open and close are counted', async () => {
  const { clock, destination, collect } = setUp(
    [{ status: 503, headers: { 'Retry-After': '1' } }, 200],
    ['http://a.example/'],
  )
  await destination.identify({ userId: 'u1' })
  await clock.advance(10_000)
  const server = { 'server.address': 'a.example', 'server.port': 80 }
  expect(count((await collect()).get('hookline.destination.circuits'))).toEqual([
    [{ ...server, 'hookline.circuit.state': 'open' }, 1],
    [{ ...server, 'hookline.circuit.state': 'closed' }, 1],
  ])
})

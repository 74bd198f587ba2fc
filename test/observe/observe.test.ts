import { channel } from 'node:diagnostics_channel'
import { context, type MetricOptions, metrics, trace } from '@opentelemetry/api'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type Health, observe } from '../../src/otel.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { fixtures } from '../../src/testing.ts'
import { deliver, setUp, watchWarnings } from '../support/receive.ts'
import { expectRefusal } from '../support/refusal.ts'
import { throwing } from '../support/throwing.ts'
import { count, setUpTelemetry } from './telemetry.ts'

const PLAIN = ['received', 'refused', 'stored', 'handled', 'failed', 'attempt', 'skipped', 'circuit']
const TRACED = ['handle:start', 'handle:asyncEnd', 'deliver:start', 'deliver:asyncEnd']
const NAMES = [...PLAIN.map((name) => `hookline:${name}`), ...TRACED.map((name) => `tracing:hookline:${name}`)]

it('stops: nothing is subscribed, observed or collected any more', async () => {
  const { spans, collect } = setUpTelemetry()
  const health = vi.fn(async (): Promise<Health> => counts)
  const stop = observe({ health })
  expect(NAMES.map((name) => channel(name).hasSubscribers)).toEqual(NAMES.map(() => true))
  stop()
  stop()
  expect(NAMES.map((name) => channel(name).hasSubscribers)).toEqual(NAMES.map(() => false))
  await deliver(setUp().receiver, fixtures.track)
  await collect()
  expect(spans()).toEqual([])
  expect(health).not.toHaveBeenCalled()
})

const rest = { waiting: 3, active: 2, deadLetters: 1, oldestDueAgeMs: 1500, asOf: undefined }
const counts: Health = { ready: true, status: 'ok', ...rest }

it('reads the gauges of the health check whenever metrics are collected, if it could be measured', async () => {
  const { collect } = setUpTelemetry()
  let now: Health = { ...counts, ready: false, status: 'unavailable', waiting: 0 }
  onTestFinished(observe({ health: async () => now }))
  const read = async () => {
    const metrics = await collect()
    return ['waiting', 'active', 'dead_letters', 'oldest_due_age'].map(
      (name) => metrics.get(`hookline.inbox.${name}`)?.[0]?.value,
    )
  }
  expect(await read()).toEqual(Array(4).fill(undefined))
  now = counts
  expect(await read()).toEqual([3, 2, 1, 1.5])
  now = { ...counts, waiting: 5, oldestDueAgeMs: 0 }
  expect(await read()).toEqual([5, 2, 1, 0])
})

it('names the gauges after what each health is of, and tells those of several apart', async () => {
  const { collect } = setUpTelemetry()
  const { receiver } = setUp()
  const destination = createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }] })
  onTestFinished(async () => void (await destination.close({ graceMs: 0 })))
  const orders = async () => ({ ...(await destination.health()), waiting: 1 })
  const users = () => destination.health()
  onTestFinished(observe({ health: { inbox: () => receiver.health(), orders, users } }))
  const metrics = await collect()
  for (const name of ['waiting', 'active', 'dead_letters', 'oldest_due_age']) {
    expect(count(metrics.get(`hookline.inbox.${name}`))).toEqual([[{ 'hookline.name': 'inbox' }, 0]])
    expect(count(metrics.get(`hookline.destination.${name}`))).toEqual([
      [{ 'hookline.name': 'orders' }, name === 'waiting' ? 1 : 0],
      [{ 'hookline.name': 'users' }, 0],
    ])
  }
})

it('what OpenTelemetry throws is a warning, and no more', async () => {
  setUpTelemetry()
  const warn = watchWarnings()
  const boom = throwing('out of order')
  trace.disable()
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan: boom, startActiveSpan: boom }) })
  onTestFinished(observe())
  const { receiver } = setUp()
  const handler = vi.fn()
  receiver.on('track', handler)

  expect(await deliver(receiver, fixtures.track)).toMatchObject({ status: 200 })

  expect(handler).toHaveBeenCalledOnce()
  expect(warn.mock.calls[0]).toEqual(['observe failed', { code: 'HOOKLINE_OTEL', detail: 'out of order' }])
})

it('makes these instruments', () => {
  const made: Record<string, string[]> = {}
  const make =
    (kind: string) =>
    (name: string, { unit, advice }: MetricOptions) => {
      const key = [kind, unit, advice?.explicitBucketBoundaries].join(' ').trim()
      made[key] = [...(made[key] ?? []), name.replace('hookline.', '')]
    }
  const meter = { createCounter: make('counter'), createHistogram: make('times'), createObservableGauge: make('gauge') }
  const callbacks = { addBatchObservableCallback() {}, removeBatchObservableCallback() {} }
  metrics.setGlobalMeterProvider({ getMeter: () => ({ ...meter, ...callbacks }) as never })
  onTestFinished(() => metrics.disable())
  onTestFinished(observe({ health: async () => counts }))

  const receiver = ['unplanned', 'stored', 'handled', 'ignored', 'failed'].map((name) => `receiver.${name}`)
  const gauges = ['inbox', 'destination'].map((owner) =>
    ['waiting', 'active', 'dead_letters'].map((name) => `${owner}.${name}`),
  )
  expect(made).toEqual({
    'counter {message}': ['messaging.client.consumed.messages', ...receiver, 'destination.skipped'],
    'counter {request}': ['receiver.refused'],
    'counter {round}': ['destination.rounds'],
    'counter {attempt}': ['destination.attempts'],
    'counter {circuit}': ['destination.circuits'],
    'times s 0.005,0.01,0.025,0.05,0.075,0.1,0.25,0.5,0.75,1,2.5,5,7.5,10': [
      'receiver.store.duration',
      'messaging.process.duration',
    ],
    'gauge {message}': gauges.flat(),
    'gauge s': ['inbox.oldest_due_age', 'destination.oldest_due_age'],
  })
})

it('works without OpenTelemetry set up, and makes nothing', async () => {
  onTestFinished(observe())
  const { receiver } = setUp()
  const seen: unknown[] = []
  receiver.on('track', () => seen.push(trace.getSpan(context.active())))
  expect(await deliver(receiver, fixtures.track)).toMatchObject({ status: 200 })
  expect(seen).toEqual([undefined])
})

it.each([
  [5, '`observe: options`'],
  [{ helth: () => {} }, '`helth`'],
  [{ health: 5 }, '`health`'],
  [{ health: null }, '`health`'],
  [{ health: { inbox: 5 } }, '`health.inbox`'],
])('refuses wrong options: %j', async (options, message) => {
  await expectRefusal(() => observe(options as never), message)
})

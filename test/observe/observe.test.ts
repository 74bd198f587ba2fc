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

it('reads the gauges of each health when metrics are collected, by what it is of and its name, if it was measured', async () => {
  const { collect } = setUpTelemetry()
  let inbox: Health = { ...counts, ready: false, status: 'unavailable', waiting: 0 }
  const destination = createDestination({ webhooks: [{ url: 'https://shop.example/webhooks' }] })
  onTestFinished(async () => void (await destination.close({ graceMs: 0 })))
  const orders = async () => ({ ...(await destination.health()), waiting: 1 })
  const stop = observe({ health: { inbox: () => inbox, orders, users: () => destination.health() } })
  const read = async (owner: string) => {
    const metrics = await collect()
    const names = ['waiting', 'active', 'dead_letters', 'oldest_due_age']
    return names.map((name) => count(metrics.get(`hookline.${owner}.${name}`)))
  }
  const [ofInbox, ofOrders, ofUsers] = ['inbox', 'orders', 'users'].map((name) => ({ 'hookline.name': name }))

  expect(await read('inbox')).toEqual(Array(4).fill(undefined))
  inbox = counts
  expect(await read('inbox')).toEqual([3, 2, 1, 1.5].map((value) => [[ofInbox, value]]))
  const ofDestinations = (value: number) => [
    [ofOrders, value],
    [ofUsers, 0],
  ]
  expect(await read('destination')).toEqual([1, 0, 0, 0].map(ofDestinations))
  stop()
  onTestFinished(observe({ health: async () => ({ ...counts, oldestDueAgeMs: 0 }) }))
  expect((await read('inbox')).map((points) => points?.at(-1))).toEqual([3, 2, 1, 0].map((value) => [{}, value]))
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

it('makes these instruments, by their units and buckets', () => {
  const made: Record<string, string> = {}
  const make = (name: string, { unit, advice }: MetricOptions) => {
    const key = [unit, ...(advice?.explicitBucketBoundaries ?? [])].join(' ')
    made[key] = `${made[key] ?? ''} ${name.replace('hookline.', '')}`.trim()
  }
  const kinds = { createCounter: make, createHistogram: make, createObservableGauge: make }
  const meter = { ...kinds, addBatchObservableCallback() {}, removeBatchObservableCallback() {} }
  metrics.setGlobalMeterProvider({ getMeter: () => meter as never })
  onTestFinished(() => metrics.disable())
  onTestFinished(observe({ health: async () => counts }))

  const ofReceiver = 'receiver.unplanned receiver.stored receiver.handled receiver.ignored receiver.failed'
  const ofHealth = ['inbox', 'destination'].map((owner) => `${owner}.waiting ${owner}.active ${owner}.dead_letters`)
  const times = 's 0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10'
  expect(made).toEqual({
    '{message}': ['messaging.client.consumed.messages', ofReceiver, 'destination.skipped', ...ofHealth].join(' '),
    ...{ '{request}': 'receiver.refused', '{round}': 'destination.rounds', '{attempt}': 'destination.attempts' },
    ...{ '{circuit}': 'destination.circuits', s: 'inbox.oldest_due_age destination.oldest_due_age' },
    [times]: 'receiver.store.duration messaging.process.duration',
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

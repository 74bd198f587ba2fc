/** observe(): makes spans and metrics of the diagnostics that receivers and destinations of this process publish. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type Meter, metrics, trace } from '@opentelemetry/api'
import { notify } from '../options/callbacks.ts'
import { requireFunction, requireOptions } from '../options/checks.ts'
import { createWarning } from '../options/warning.ts'
import type { Health } from '../queues/health.ts'
import { createDestinationTelemetry } from './destination-telemetry.ts'
import { createReceiverTelemetry } from './receiver-telemetry.ts'

/** Options of `observe`. */
export interface ObserveOptions {
  /** Reads the state of the inbox, once for each collection of metrics: `() => receiver.health()`. Default: no such gauges. */
  readonly health?: () => Promise<Health> | Health
}

/**
 * Observes every receiver and destination of this process. Call it once, after setting OpenTelemetry up: instruments that
 * were created before have no effect. Failures in OpenTelemetry become process warnings, `HOOKLINE_OTEL`.
 *
 * @returns A function that stops observing.
 * @throws TypeError that names the option.
 * @example
 * const stop = observe({ health: () => receiver.health() })
 */
export function observe(options: ObserveOptions = {}): () => void {
  requireOptions('observe', options, ['health'])
  const { health } = options
  if (health !== undefined) requireFunction('health', health)
  const [tracer, meter] = [trace.getTracer('hookline'), metrics.getMeter('hookline')]
  const { received, rejected, stored, handled, failed } = createReceiverTelemetry(tracer, meter)
  const { attempt, skipped } = createDestinationTelemetry(tracer, meter)
  const warn = createWarning('observe', 'HOOKLINE_OTEL')
  const stopHealth = health && observeHealth(meter, health)

  const stops = Object.entries({ received, rejected, stored, handled, failed, attempt, skipped }).map(
    ([name, record]) => {
      // An error thrown by a subscriber would end the process.
      const onEvent = (event: unknown): void => {
        notify(() => record(event as never), warn)
      }
      subscribe(`hookline:${name}`, onEvent)
      return () => unsubscribe(`hookline:${name}`, onEvent)
    },
  )
  return () => {
    for (const stop of stops) stop()
    stopHealth?.()
  }
}

/** Creates gauges that call `health` when metrics are collected. Returns a function that removes them. */
function observeHealth(meter: Meter, health: () => Promise<Health> | Health): () => void {
  const jobs = (name: string, description: string) => {
    return meter.createObservableGauge(`hookline.inbox.${name}`, { description, unit: '{message}' })
  }
  const waiting = jobs('waiting', 'Messages that wait to be handled, now or later.')
  const active = jobs('active', 'Messages that are being handled.')
  const deadLetters = jobs('dead_letters', 'Messages that are dead letters.')
  const oldest = meter.createObservableGauge('hookline.inbox.oldest_due_age', {
    description: 'Age of the oldest message that is due.',
    unit: 's',
  })
  const gauges = [waiting, active, deadLetters, oldest]

  const read: Parameters<Meter['addBatchObservableCallback']>[0] = async (result) => {
    const now = await health()
    if (now.status === 'unavailable') return // Its zeros are not measured.
    result.observe(waiting, now.waiting)
    result.observe(active, now.active)
    result.observe(deadLetters, now.deadLetters)
    result.observe(oldest, now.oldestDueAgeMs / 1000)
  }
  meter.addBatchObservableCallback(read, gauges)
  return () => meter.removeBatchObservableCallback(read, gauges)
}

/** Makes spans and metrics of everything that receivers and destinations of this process tell. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { metrics, trace } from '@opentelemetry/api'
import { refuseUnknown, requireFunction } from '../protocol/options.ts'
import { tell } from '../protocol/report.ts'
import type { Health } from '../receiver/health.ts'
import { createAttemptTelemetry } from './attempts.ts'
import { observeHealth } from './health.ts'
import { createReceiverTelemetry } from './received.ts'

/** What `observe` takes. */
export interface ObserveOptions {
  /** Says how the inbox is, each time metrics are collected: `() => receiver.health()`. Default: no such gauges. */
  readonly health?: () => Promise<Health> | Health
}

/**
 * Observes every receiver and destination of this process. Call it once, after OpenTelemetry is set up: instruments that
 * are made before stay without effect. What fails in OpenTelemetry becomes a process warning, `HOOKLINE_OTEL`.
 *
 * @returns What stops it.
 * @throws TypeError that names the option.
 * @example
 * const stop = observe({ health: () => receiver.health() })
 */
export function observe(options: ObserveOptions = {}): () => void {
  if (typeof options !== 'object' || options === null) throw new TypeError('observe: its options are an object.')
  refuseUnknown(options, ['health'])
  const { health } = options
  if (health !== undefined) requireFunction('health', health)
  const [tracer, meter] = [trace.getTracer('hookline'), metrics.getMeter('hookline')]
  const { received, rejected, stored, handled, failed } = createReceiverTelemetry(tracer, meter)
  const attempt = createAttemptTelemetry(tracer, meter)
  const stopHealth = health && observeHealth(meter, health)

  const stops = Object.entries({ received, rejected, stored, handled, failed, attempt }).map(([name, take]) => {
    // What a subscriber throws ends the process.
    const onEvent = (event: unknown): void => tell(() => take(event as never), 'observe', 'HOOKLINE_OTEL')
    subscribe(`hookline:${name}`, onEvent)
    return () => unsubscribe(`hookline:${name}`, onEvent)
  })
  return () => {
    for (const stop of stops) stop()
    stopHealth?.()
  }
}

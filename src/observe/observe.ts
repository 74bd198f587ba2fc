/** observe(): creates spans and metrics from the diagnostics that the receivers and destinations of this process publish. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { metrics, trace } from '@opentelemetry/api'
import { notify } from '../kit/callbacks.ts'
import { requireFunction, requireMethods, requireOptions } from '../kit/checks.ts'
import { createWarning } from '../kit/warning.ts'
import { createDestinationTelemetry } from './destination-telemetry.ts'
import { observeHealth, type ReadHealth } from './gauges.ts'
import { createReceiverTelemetry } from './receiver-telemetry.ts'

/** The options of `observe`. */
export interface ObserveOptions {
  /**
   * Reads the health of a receiver or a destination each time that metrics are collected: `() => receiver.health()`. To observe several of
   * them, pass an object of such functions. Its keys become the values of the attribute `hookline.name`. Default: no health is recorded.
   */
  readonly health?: ReadHealth | Readonly<Record<string, ReadHealth>>
}

/**
 * Creates spans and metrics for every receiver and destination of this process. Call `observe` once, after the setup of OpenTelemetry:
 * instruments that are created earlier have no effect. Errors of OpenTelemetry become process warnings with the code `HOOKLINE_OTEL`.
 *
 * @returns A function that stops observing.
 * @throws TypeError that names the invalid option.
 * @example
 * const stop = observe({ health: () => receiver.health() })
 */
export function observe(options: ObserveOptions = {}): () => void {
  requireOptions('observe', options, ['health'])
  const { health } = options
  if (typeof health === 'object' && health !== null) requireMethods('health', health, Object.keys(health))
  else if (health !== undefined) requireFunction('health', health)
  const [tracer, meter] = [trace.getTracer('hookline'), metrics.getMeter('hookline')]
  const records = { ...createReceiverTelemetry(tracer, meter), ...createDestinationTelemetry(tracer, meter) }
  const warn = createWarning('observe', 'HOOKLINE_OTEL')
  const stopHealth = health && observeHealth(meter, health)

  const stops = Object.entries(records).map(([name, record]) => {
    // `notify` catches errors, because an error that a subscriber throws would end the process.
    const onEvent = (event: unknown): void => {
      notify(() => record(event as never), warn)
    }
    const channel = name.includes(':') ? `tracing:hookline:${name}` : `hookline:${name}`
    subscribe(channel, onEvent)
    return () => unsubscribe(channel, onEvent)
  })
  return () => {
    for (const stop of stops) stop()
    stopHealth?.()
  }
}

/** OpenTelemetry as a process sets it up, into memory. Tests of one file share it, as parts of a process do. */

import { context, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { onTestFinished } from 'vitest'

interface Point {
  readonly attributes: object
  readonly value: number | { readonly count: number; readonly sum?: number | undefined }
}

export const count = (points: readonly Point[] | undefined) =>
  points?.map(({ attributes, value }) => [attributes, value])

/** Sets it up, and takes it down when the test is over. */
export function setUpTelemetry() {
  const exporter = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 2 ** 31 - 1 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  trace.setGlobalTracerProvider(tracerProvider)
  metrics.setGlobalMeterProvider(meterProvider)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  onTestFinished(async () => {
    for (const api of [trace, metrics, context, propagation]) api.disable()
    await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()])
  })

  /** Every metric that was measured, by name. */
  async function collect(): Promise<ReadonlyMap<string, readonly Point[]>> {
    metricExporter.reset()
    await reader.forceFlush()
    const all = metricExporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    return new Map(all.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints as Point[]]))
  }

  return { spans: () => exporter.getFinishedSpans(), collect }
}

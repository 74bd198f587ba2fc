/**
 * OpenTelemetry: spans and metrics of the diagnostics that receivers and destinations publish.
 *
 * @module hookline/otel
 */

export type { Handler } from '../handling/selection.ts'
export type { Health } from '../queues/health.ts'
export type { ReadHealth } from './gauges.ts'
export { inTrace } from './in-trace.ts'
export { type ObserveOptions, observe } from './observe.ts'

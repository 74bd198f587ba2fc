/**
 * Creates OpenTelemetry spans and metrics from the diagnostics that receivers and destinations publish.
 *
 * @module hookline/otel
 */

export type { ReadHealth } from './observe/gauges.ts'
export { type ObserveOptions, observe } from './observe/observe.ts'
export type { Health } from './store/health.ts'

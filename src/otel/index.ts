/**
 * OpenTelemetry: spans and metrics of what receivers and destinations tell on their diagnostics channels.
 *
 * @module hookline/otel
 */

export type { Handler } from '../receiver/handlers.ts'
export type { Health } from '../receiver/health.ts'
export { type ObserveOptions, observe } from './observe.ts'
export { inTrace } from './trace-parent.ts'

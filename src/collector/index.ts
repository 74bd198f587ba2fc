/**
 * The collection API: takes recorded calls over HTTP and routes them to destinations.
 *
 * @module hookline/collector
 */

export type { Clock } from '../protocol/clock.ts'
export type { Endpoint, EndpointAnswer, EndpointHeaders, EndpointRequest } from '../protocol/endpoint.ts'
export type { Queued, Submission } from '../sender/api.ts'
export type {
  Collector,
  CollectorDestination,
  DeleteOptions,
  QueuedDeletion,
  Source,
} from './api.ts'
export { createCollector } from './collector.ts'
export type { CollectorOptions, CollectorRequest } from './options.ts'

/**
 * Accepts recorded calls over HTTP, and routes them to destinations.
 *
 * @module hookline/collector
 */

export type { CollectedEvent, CollectorObserver, CollectorRequest } from './collect/collector-events.ts'
export type { CollectorOptions } from './collect/collector-options.ts'
export type {
  Collector,
  CollectorChanges,
  CollectorDestination,
  DeleteOptions,
  QueuedDeletion,
  Source,
  SourceKind,
} from './collect/collector-types.ts'
export { createCollector } from './collect/create-collector.ts'
export type {
  Endpoint,
  EndpointAnswer,
  EndpointHeaders,
  EndpointRequest,
} from './host/endpoint.ts'
export type { Clock } from './kit/clock.ts'
export type { Logger } from './kit/log.ts'
export type { Queued, Submission } from './send/destination-types.ts'

/**
 * The collection API: takes recorded calls over HTTP and routes them to destinations.
 *
 * @module hookline/collector
 */

export type { Queued, Submission } from '../destination/api.ts'
export type {
  Endpoint,
  EndpointAnswer,
  EndpointHeaders,
  EndpointRequest,
} from '../http/endpoint.ts'
export type { Logger } from '../options/log.ts'
export type { Clock } from '../time/clock.ts'
export type {
  Collector,
  CollectorChanges,
  CollectorDestination,
  DeleteOptions,
  QueuedDeletion,
  Source,
  SourceKind,
} from './api.ts'
export { createCollector } from './collector.ts'
export type { CollectedEvent, CollectorObserver, CollectorRequest } from './observer.ts'
export type { CollectorOptions } from './options.ts'

/**
 * Sends messages as signed POSTs: once with createSender, or with four hours of retries with createDestination.
 *
 * @module hookline/sender
 */

export type {
  Destination,
  DestinationChanges,
  DestinationCloseOptions,
  DestinationDeadLetter,
  DestinationHealth,
  DestinationLetterFilter,
  Queued,
  Submission,
  SyncOptions,
} from './destination/api.ts'
export type { CircuitEvent, CircuitOptions, CircuitState, UrlHealth } from './destination/circuit.ts'
export { createDestination } from './destination/destination.ts'
export type { MessageContext, MessageFunctions } from './destination/functions.ts'
export type {
  DeliveryReport,
  DestinationObserver,
  FailureReason,
  ObservedReport,
  QueuedEvent,
  SkippedEvent,
  SkipReason,
} from './destination/observer.ts'
export type { DestinationOptions } from './destination/options.ts'
export type { DispatcherLike } from './http/post.ts'
export type {
  AliasCall,
  CallActor,
  CallOptions,
  Calls,
  DeleteCall,
  GroupCall,
  IdentifyCall,
  PageCall,
  ScreenCall,
  TrackCall,
} from './message/calls.ts'
export type { Logger } from './options/log.ts'
export type { DeadLetterFilter, DeadLetterPage, Forgotten, PushOptions } from './queues/api.ts'
export type { MessageFilter } from './queues/filter.ts'
export type { Health } from './queues/health.ts'
export type { LetterCount, LetterFilter } from './queues/letters.ts'
export type {
  Attempt,
  AttemptError,
  CallMethods,
  RequestOptions,
  Round,
  Sender,
  SenderRequest,
  SendOptions,
} from './sender/api.ts'
export type { SenderOptions } from './sender/options.ts'
export { createSender } from './sender/sender.ts'
export type { Tampering } from './sender/tamper.ts'
export type { Webhook } from './sender/webhooks.ts'
export type { Clock } from './time/clock.ts'

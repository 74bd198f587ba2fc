/**
 * Sends messages as signed POSTs: once with createSender, or with retries for four hours with createDestination.
 *
 * @module hookline/sender
 */

export type { Clock } from './kit/clock.ts'
export type { Logger } from './kit/log.ts'
export type { DispatcherLike } from './kit/post.ts'
export type { TracedEvent } from './kit/trace.ts'
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
} from './protocol/calls.ts'
export type { CircuitEvent, CircuitOptions, CircuitState, UrlHealth } from './send/circuit.ts'
export { createDestination } from './send/create-destination.ts'
export { createSender } from './send/create-sender.ts'
export type {
  DeliverEvent,
  DeliveryReport,
  DestinationObserver,
  FailureReason,
  ObservedReport,
  QueuedEvent,
  SkippedEvent,
  SkipReason,
} from './send/destination-events.ts'
export type { DestinationOptions } from './send/destination-options.ts'
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
} from './send/destination-types.ts'
export type { MessageContext, MessageFunctions } from './send/message-functions.ts'
export type { SenderOptions } from './send/sender-options.ts'
export type {
  Attempt,
  AttemptError,
  CallMethods,
  RequestOptions,
  Round,
  Sender,
  SenderRequest,
  SendOptions,
} from './send/sender-types.ts'
export type { Tampering } from './send/tamper.ts'
export type { Webhook } from './send/webhooks.ts'
export type { EncryptionKey, EncryptionOptions } from './store/encryption.ts'
export type { FieldValue, MessageFilter } from './store/filter.ts'
export type { Health } from './store/health.ts'
export type { LetterCount, LetterFilter } from './store/letters.ts'
export type { DeadLetterFilter, DeadLetterPage, Forgotten, PushOptions } from './store/queue-types.ts'

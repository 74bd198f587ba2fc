/**
 * Receives messages: verifies them, parses them, and passes them to handlers.
 *
 * @module hookline
 */

export type { BodySource, EndpointBody } from './host/body.ts'
export type {
  Endpoint,
  EndpointAnswer,
  EndpointHeaders,
  EndpointRequest,
} from './host/endpoint.ts'
export type { Clock } from './kit/clock.ts'
export type { Logger } from './kit/log.ts'
export type { TracedEvent } from './kit/trace.ts'
export { HooklineError, type HooklineErrorCode, type HooklineErrorOptions, type SchemaIssue } from './protocol/error.ts'
export type {
  AliasMessage,
  Context,
  CustomMessage,
  DeleteMessage,
  Fields,
  GroupMessage,
  IdentifyMessage,
  Message,
  MessageType,
  PageMessage,
  PageProperties,
  ReceivedMessage,
  ScreenMessage,
  TrackMessage,
} from './protocol/message.ts'
export { parse } from './protocol/parse.ts'
export { sign, verify } from './protocol/signature.ts'
export { MESSAGE_TYPES } from './protocol/type-table.ts'
export { createReceiver } from './receive/create-receiver.ts'
export type { ReceiverDedupeOptions } from './receive/deduplication.ts'
export type {
  Delivery,
  DeliveryMethod,
  DeliveryReplay,
  HandlerNames,
  ReceivedElement,
  TransactionClient,
} from './receive/delivery.ts'
export type {
  AnsweredEvent,
  AnsweredRequest,
  FailedEvent,
  FailedRequest,
  ForgottenEvent,
  HandledEvent,
  HandleEvent,
  HandlerRun,
  IgnoredEvent,
  ReceivedEvent,
  ReceiverObserver,
  RefusedEvent,
  StoredEvent,
  UnplannedEvent,
} from './receive/events.ts'
export type { AudienceHandlers } from './receive/handlers.ts'
export type { HandledMessage, HistoryFilter, Replay, ReplayOptions } from './receive/history.ts'
export type { InboxOptions } from './receive/inbox-options.ts'
export type { DeadLetterReason, StoredError, StoredErrorCause } from './receive/inbox-state.ts'
export type { BatchHandler, BatchOptions, MessageBatch } from './receive/message-batches.ts'
export type { OnRejected, ReceiverOptions, RejectedMessage } from './receive/receiver-options.ts'
export type {
  ForgetOptions,
  HeadersLike,
  MessageOf,
  MessageOfType,
  Received,
  ReceiveOptions,
  Receiver,
  ReceiverCloseOptions,
  ReceiverHealth,
  TrackOf,
  TypeOf,
} from './receive/receiver-types.ts'
export type {
  CustomOf,
  CustomOption,
  EventName,
  EventSchemas,
  EventsOf,
  OutputOf,
  Schema,
  SchemaOutput,
  SchemaResult,
  TraitSchemas,
} from './receive/schema.ts'
export type { HeaderKey, SecretProvider, Secrets, SourceRequest, SourceSecrets } from './receive/secrets.ts'
export type { Handler, HandlerOptions } from './receive/selection.ts'
export type { DeadLetterMessage, InboxLetterFilter, StoredMessage } from './receive/stored-message.ts'
export type { OnUnplanned } from './receive/unplanned.ts'
export type { ReceiverWorkOptions, WorkResult } from './receive/work.ts'
export type { EncryptionKey, EncryptionOptions } from './store/encryption.ts'
export type { FieldValue, MessageFilter } from './store/filter.ts'
export type { Health } from './store/health.ts'
export type { LetterCount, LetterFilter } from './store/letters.ts'
export type { DeadLetterFilter, DeadLetterPage, Forgotten, HistoryOptions } from './store/queue-types.ts'

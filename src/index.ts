/**
 * Receives messages: verifies, parses and dispatches them to handlers.
 *
 * @module hookline
 */

export type {
  Delivery,
  DeliveryMethod,
  DeliveryReplay,
  HandlerNames,
  ReceivedElement,
  TransactionClient,
} from './handling/delivery.ts'
export type {
  AnsweredEvent,
  AnsweredRequest,
  FailedEvent,
  FailedRequest,
  ForgottenEvent,
  HandledEvent,
  HandlerRun,
  IgnoredEvent,
  ReceivedEvent,
  ReceiverObserver,
  RefusedEvent,
  StoredEvent,
  UnplannedEvent,
} from './handling/events.ts'
export type { AudienceHandlers } from './handling/handlers.ts'
export type {
  CustomOf,
  CustomOption,
  EventSchemas,
  OutputOf,
  Schema,
  SchemaOutput,
  SchemaResult,
  TraitSchemas,
} from './handling/schema.ts'
export type { Handler, HandlerOptions } from './handling/selection.ts'
export type { BodySource, EndpointBody } from './http/body.ts'
export type {
  Endpoint,
  EndpointAnswer,
  EndpointHeaders,
  EndpointRequest,
} from './http/endpoint.ts'
export type { HandledMessage, HistoryFilter, Replay, ReplayOptions } from './inbox/history.ts'
export type { InboxOptions } from './inbox/options.ts'
export type { DeadLetterReason, StoredError, StoredErrorCause } from './inbox/retry-state.ts'
export type { DeadLetterMessage, InboxLetterFilter, StoredMessage } from './inbox/stored.ts'
export { HooklineError, type HooklineErrorCode, type HooklineErrorOptions, type SchemaIssue } from './message/error.ts'
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
} from './message/message.ts'
export { parse } from './message/parse.ts'
export { sign, verify } from './message/signature.ts'
export { MESSAGE_TYPES } from './message/type-table.ts'
export type { Logger } from './options/log.ts'
export type { DeadLetterFilter, DeadLetterPage, Forgotten, HistoryOptions } from './queues/api.ts'
export type { MessageFilter } from './queues/filter.ts'
export type { Health } from './queues/health.ts'
export type { LetterCount, LetterFilter } from './queues/letters.ts'
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
} from './receiver/api.ts'
export type { ReceiverDedupeOptions } from './receiver/deduplication.ts'
export type { OnRejected, ReceiverOptions, RejectedMessage } from './receiver/options.ts'
export { createReceiver } from './receiver/receiver.ts'
export type { HeaderKey, SecretProvider, Secrets, SourceRequest, SourceSecrets } from './receiver/secrets.ts'
export type { OnUnplanned } from './receiver/unplanned.ts'
export type { Clock } from './time/clock.ts'

/**
 * The package's face: the receiving side.
 *
 * @module hookline
 */

export type { BodySource, EndpointBody } from './protocol/body.ts'
export type { Clock } from './protocol/clock.ts'
export type { Endpoint, EndpointAnswer, EndpointHeaders, EndpointRequest } from './protocol/endpoint.ts'
export { HooklineError, type HooklineErrorCode, type HooklineErrorOptions } from './protocol/error.ts'
export type {
  AliasMessage,
  Context,
  DeleteMessage,
  Fields,
  GroupMessage,
  IdentifyMessage,
  Message,
  MessageType,
  PageMessage,
  PageProperties,
  ScreenMessage,
  TrackMessage,
} from './protocol/message.ts'
export { parse } from './protocol/parse.ts'
export { sign, verify } from './protocol/signature.ts'
export type {
  DeadMessage,
  MessageOf,
  Received,
  Receiver,
  ReceiverCloseOptions,
  StoredMessage,
  TrackOf,
} from './receiver/api.ts'
export type { Delivery } from './receiver/delivery.ts'
export type { FailedEvent, HandledEvent, ReceivedEvent, RejectedEvent, StoredEvent } from './receiver/events.ts'
export type { AudienceHandlers, Handler } from './receiver/handlers.ts'
export type { HeadersLike } from './receiver/headers.ts'
export type { Health } from './receiver/health.ts'
export type { DeadReason, KeptCause, KeptError } from './receiver/history.ts'
export type { InboxOptions } from './receiver/inbox-options.ts'
export type { ReceiverDedupeOptions } from './receiver/once.ts'
export type { FailedRequest, ReceiverOptions, RejectedMessage } from './receiver/options.ts'
export { createReceiver } from './receiver/receiver.ts'
export type { EventSchemas, Schema, SchemaIssue, SchemaOutput, SchemaResult, TraitSchemas } from './receiver/schema.ts'
export type { SecretProvider, Secrets } from './receiver/secrets.ts'

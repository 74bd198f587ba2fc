/**
 * The client: records calls in server code and submits them to a collection service in batches.
 *
 * @module hookline/client
 */

export type { Calls, PageCall } from '../protocol/calls.ts'
export type { Clock } from '../protocol/clock.ts'
export type { DispatcherLike } from '../protocol/post.ts'
export type { CallType, Client, ClientCalls, ClientPageCall, CloseOptions, RecordedCall } from './api.ts'
export { createClient } from './client.ts'
export { DeliveryError, type DeliveryErrorDetails, type DeliveryErrorReason } from './delivery-error.ts'
export type { ClientOptions, WhenFull } from './options.ts'

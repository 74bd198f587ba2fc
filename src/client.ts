/**
 * Records calls in server code, and posts them to a collection service in batches.
 *
 * @module hookline/client
 */

export { BatchError, type BatchErrorDetails, type BatchErrorReason } from './collect/batch-result.ts'
export type { ClientOptions, WhenFull } from './collect/client-options.ts'
export type { Client, ClientCalls, ClientPageCall, CloseOptions, RecordedCall } from './collect/client-types.ts'
export { createClient } from './collect/create-client.ts'
export type { Clock } from './kit/clock.ts'
export type { Logger } from './kit/log.ts'
export type { DispatcherLike } from './kit/post.ts'
export type { Calls, PageCall } from './protocol/calls.ts'
export type { CallType } from './protocol/type-table.ts'

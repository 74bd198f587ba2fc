/**
 * The client: records calls in server code and posts them to a collection service in batches.
 *
 * @module hookline/client
 */

export type { DispatcherLike } from '../http/post.ts'
export type { Calls, PageCall } from '../message/calls.ts'
export type { CallType } from '../message/type-table.ts'
export type { Logger } from '../options/log.ts'
export type { Clock } from '../time/clock.ts'
export type { Client, ClientCalls, ClientPageCall, CloseOptions, RecordedCall } from './api.ts'
export { BatchError, type BatchErrorDetails, type BatchErrorReason } from './batch-result.ts'
export { createClient } from './client.ts'
export type { ClientOptions, WhenFull } from './options.ts'

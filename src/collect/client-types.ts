/** The client's methods, and the calls that they accept and return. Types only. */

import type { CallActor, CallOptions, Calls } from '../protocol/calls.ts'
import type { PageProperties } from '../protocol/message.ts'
import type { CallType } from '../protocol/type-table.ts'

/**
 * A call that records a page view. Pass the properties of the page as `properties` or, as the specification calls them, `traits`; they are
 * sent as `properties`.
 */
export type ClientPageCall = CallOptions &
  CallActor & { readonly name?: string; readonly category?: string } & (
    | { readonly properties?: PageProperties; readonly traits?: never }
    | { readonly traits?: PageProperties; readonly properties?: never }
  )

/** The argument of each method of a client, keyed by method ("Go client library", Message types). */
export interface ClientCalls extends Omit<Calls, 'page' | 'delete'> {
  readonly page: ClientPageCall
}

/** A complete call as it is posted: a copy of the call that was recorded. */
export type RecordedCall = {
  readonly [Type in CallType]: Calls[Type] & {
    readonly type: Type
    readonly messageId: string
    /** The time of the event: ISO 8601 in UTC with milliseconds. */
    readonly timestamp: string
  }
}[CallType]

/** Options of `close`. */
export interface CloseOptions {
  /** How long to wait for calls that are not yet delivered, in milliseconds. Default 10 000; 0 gives up at once. */
  readonly timeoutMs?: number
}

/**
 * Records calls. Each method checks and copies the call and returns; batches are posted in the background. One client can serve any number
 * of concurrent requests.
 *
 * Each method throws a TypeError that names the field if the call is incomplete or cannot be written as JSON. It throws a HooklineError
 * with the code `call_too_large` for a call over 32 KB, `queue_full` (see `whenFull`), or `shutting_down` after `close`.
 *
 * A process that exits because it has nothing left to do first posts the remaining calls, for up to 10 seconds. A process that ends in any
 * other way loses them, so close the client first.
 */
export type Client = {
  readonly [Type in CallType]: (call: ClientCalls[Type]) => void
} & {
  /**
   * Posts the buffered calls. Resolves when every call recorded so far is delivered or abandoned, after any retries, and the promises that
   * `onError` returned are settled. Never rejects: calls that could not be delivered go to `onError`.
   */
  flush(): Promise<void>
  /**
   * Records no more calls, posts the rest and closes the connections. Resolves to the calls that were neither delivered
   * nor abandoned in time, in the order in which they were recorded. Later calls to `close` return the same promise.
   *
   * @throws TypeError (as a rejection) for invalid options.
   */
  close(options?: CloseOptions): Promise<readonly RecordedCall[]>
}

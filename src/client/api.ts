/** What createClient() gives, and the calls it takes and gives back: types only. */

import type { CallActor, CallOptions, Calls } from '../protocol/calls.ts'
import type { PageProperties } from '../protocol/message.ts'

/**
 * A user looked at a web page. What is known of the page goes into `properties`, or into `traits`, as the specification
 * calls it; it travels as `properties`.
 */
export type ClientPageCall = CallOptions &
  CallActor & { readonly name?: string; readonly category?: string } & (
    | { readonly properties?: PageProperties; readonly traits?: never }
    | { readonly traits?: PageProperties; readonly properties?: never }
  )

/** What each method of a client takes ("Go client library", Message types). */
export interface ClientCalls extends Omit<Calls, 'page' | 'delete'> {
  readonly page: ClientPageCall
}

/** The name of a call: `identify`, `track`, `page`, `screen`, `group` or `alias`. */
export type CallType = keyof ClientCalls

/** A call as it travels: complete, and a copy of what was recorded. */
export type RecordedCall = {
  readonly [Type in CallType]: Calls[Type] & {
    readonly type: Type
    readonly messageId: string
    /** When it happened: ISO 8601 in UTC with milliseconds. */
    readonly timestamp: string
  }
}[CallType]

/** How to close. */
export interface CloseOptions {
  /** How long what is not delivered yet may still take, in milliseconds. Default 10 000; 0 gives up at once. */
  readonly timeoutMs?: number
}

/**
 * Records calls. Each method checks and copies the call and returns; batches are sent in the background. Safe to use
 * from any number of requests at once.
 *
 * Each method throws a TypeError that names the field for a call that is not complete or cannot be written as JSON, and
 * a HooklineError: `call_too_large` over 32 KB, `queue_full` (see `whenFull`), `shutting_down` after `close`.
 */
export type Client = {
  readonly [Type in CallType]: (call: ClientCalls[Type]) => void
} & {
  /**
   * Sends what is queued. Resolves when every call recorded before is delivered or given up, retries included, and what
   * `onError` returned is settled. Never rejects: what could not be delivered is told to `onError`.
   */
  flush(): Promise<void>
  /**
   * Takes no more calls, sends the rest and lets go of the connections. Resolves to the calls that were neither delivered
   * nor given up when time was over, in the order in which they were recorded. Closing again waits for the same end.
   *
   * @throws TypeError (as a rejection) for options that are none.
   */
  close(options?: CloseOptions): Promise<readonly RecordedCall[]>
}

/** The public types of a sender. */

import type { AttemptError } from '../kit/connection-error.ts'
import type { Calls } from '../protocol/calls.ts'
import type { Message } from '../protocol/message.ts'
import type { Tampering } from './tamper.ts'

export type { AttemptError }

/** One POST to one URL. */
export interface Attempt {
  /** The webhook URL. Its query is shown as `?…`, because it may hold a token. */
  readonly url: string
  /** When the attempt began. */
  readonly at: Date
  /** The duration of the attempt, including the time to connect, in milliseconds. */
  readonly durationMs: number
  /** Whether the endpoint accepted the message, that is, responded with a 2xx status. */
  readonly ok: boolean
  /** The status of the response; absent when `error` is set. */
  readonly status?: number
  /** Why there was no complete response; absent when `status` is set. */
  readonly error?: AttemptError
  /** The error in words: what is required, what was found and what to do. */
  readonly reason?: string
  /** The first 256 bytes of the response body. */
  readonly body: string
  /** The wait that the `Retry-After` of a failed attempt asks for, in milliseconds. */
  readonly retryAfterMs?: number
}

/** The attempts to post one message: one for each URL. */
export interface Round {
  /** Whether any URL accepted the message ("Outbound event delivery", Errors: one is enough). */
  readonly ok: boolean
  /** The message as it was sent. */
  readonly message: Message
  /** One attempt for each URL, in the order of the webhooks. */
  readonly attempts: readonly Attempt[]
}

/** One method for each of the seven message types. `Options` lists the arguments of each method after the call. */
export type CallMethods<Result, Options extends readonly unknown[] = []> = {
  readonly [Type in keyof Calls]: (call: Calls[Type], ...options: Options) => Promise<Result>
}

/** Options of {@link Sender.send}. */
export interface SendOptions {
  /** Sends the message incorrectly on purpose, to test an endpoint. */
  readonly tamper?: Tampering
}

/** Options of {@link Sender.request}. */
export interface RequestOptions extends SendOptions {
  /** The index of the webhook. Default 0. */
  readonly webhook?: number
}

/** A request that has not been sent: pass it to `fetch`, or its parts to another HTTP client. */
export interface SenderRequest {
  readonly url: string
  readonly method: 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** The exact bytes of the body. */
  readonly body: Uint8Array<ArrayBuffer>
  /** Whether to send the body in chunks, without its length. */
  readonly isChunked: boolean
  /** How many times to send the request. */
  readonly copies: number
}

/** Sends each message once to every URL. */
export interface Sender extends CallMethods<Round> {
  /**
   * Sends a whole message. Adds `version`, `timestamp`, `messageId` and `context` where they are missing.
   *
   * @throws TypeError (as a rejection) that names the field, for an invalid message.
   * @throws HooklineError (as a rejection) `shutting_down` after {@link close}.
   */
  send(message: Message, options?: SendOptions): Promise<Round>
  /**
   * Creates the request for a message without sending it.
   *
   * @throws TypeError if a field of the message or an option is invalid. The error names it.
   */
  request(message: Message, options?: RequestOptions): SenderRequest
  /** Waits for the rounds under way and closes the connections. Later calls reject with `shutting_down`. */
  close(): Promise<void>
}

/** The bytes of a request's body, where they were found, and the errors of reading them. */

import { HooklineError } from '../message/error.ts'

/**
 * Where the bytes of a body were found: the `stream` itself; `rawBody` or `body` as a Buffer; either as text, which was
 * decoded and is encoded again; `reserialised`, `JSON.stringify` of what a parser mounted earlier left; or the
 * `argument` of a direct call.
 */
export type BodySource = 'stream' | 'rawBody' | 'rawBody-text' | 'body' | 'body-text' | 'reserialised' | 'argument'

/** A body that was read in full. */
export interface EndpointBody {
  readonly bytes: Uint8Array
  readonly source: BodySource
}

/** Whether a body from this source is, byte for byte, what was sent. */
export function isExact(source: BodySource): boolean {
  return source === 'stream' || source === 'rawBody' || source === 'body' || source === 'argument'
}

/** How to keep the exact bytes of a body. */
export const KEEP_THE_BYTES =
  'Mount the webhook route before what reads the body (express.json(), koa-bodyparser …), or have that keep the bytes as rawBody (a Buffer).'

/**
 * The error for a body whose exact bytes were lost before the endpoint read them.
 *
 * @param found What is left of the body: `a stream with an encoding`.
 */
export function bodyConsumed(found: string): HooklineError {
  return new HooklineError(
    'body_consumed',
    `The signature cannot be checked, because the body was read before. Got ${found}. ${KEEP_THE_BYTES}`,
  )
}

/** The error for a body over the limit. */
export function bodyTooLarge(limit: number): HooklineError {
  return new HooklineError(
    'body_too_large',
    `The body is too large. Got more than the limit of ${limit} bytes. Send a smaller body, or raise the limit where the endpoint has that option.`,
  )
}

/** The error for a body that ended before it was complete. */
export function bodyAborted(): HooklineError {
  return new HooklineError(
    'body_aborted',
    'The body is incomplete. Got the end of the stream before the end of the body. Send the request again.',
  )
}

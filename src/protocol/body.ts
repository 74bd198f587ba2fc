/** The bytes of a request's body and where they were found. */

import { isUint8Array } from 'node:util/types'
import { HooklineError } from './error.ts'

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

/** Whether a body from here is certain to be, byte for byte, what was sent. */
export function isExact(source: BodySource): boolean {
  return source === 'stream' || source === 'rawBody' || source === 'body' || source === 'argument'
}

/** How to keep the exact bytes of a body. */
export const KEEP_THE_BYTES =
  'Mount the webhook route before what reads the body (express.json(), koa-bodyparser …), or have that keep the bytes as rawBody (a Buffer).'

/** The error for bytes that were lost before they came here. */
export function bodyConsumed(found: string): HooklineError {
  return new HooklineError(
    'body_consumed',
    `The body was read before, and ${found}, so the signature cannot be checked. ${KEEP_THE_BYTES}`,
  )
}

/** The error for a body over the limit. */
export function bodyTooLarge(limit: number): HooklineError {
  return new HooklineError('body_too_large', `The body is larger than the limit of ${limit} bytes.`)
}

/** The error for a body that ended before it was complete. */
export function bodyAborted(): HooklineError {
  return new HooklineError('body_aborted', 'The client went away before the body was complete.')
}

/**
 * Lets bytes pass.
 *
 * @throws TypeError that names the argument, for anything else.
 */
export function requireBytes(value: unknown, name: string): Uint8Array {
  if (isUint8Array(value)) return value // instanceof fails across realms, as under Jest with jsdom
  throw new TypeError(`${name} must be the exact bytes (a Uint8Array), not text and not a parsed object.`)
}

/** The body of a request, where its bytes were found, and the errors of reading it. */

import { HooklineError } from '../protocol/error.ts'

/**
 * Where the bytes of a body were found. `stream` is the body as it arrives. `rawBody` and `body` are properties of the request that hold
 * bytes. `rawBody-text` and `body-text` are the same properties holding text, which is encoded again. `reserialised` is the
 * `JSON.stringify` of an object that a body parser left. `argument` is the argument of `receive`.
 */
export type BodySource = 'stream' | 'rawBody' | 'rawBody-text' | 'body' | 'body-text' | 'reserialised' | 'argument'

/** A body that was read in full. */
export interface EndpointBody {
  readonly bytes: Uint8Array
  readonly source: BodySource
}

/**
 * Returns whether a body is, byte for byte, the body that was sent. Text is exact if it has the length that was sent and contains no
 * U+FFFD, which replaces bytes that are not UTF-8. An object that was serialised again never counts as exact, because it may differ.
 *
 * @param length The header `content-length`.
 */
export function isExact(bytes: Uint8Array, source: BodySource, length: unknown): boolean {
  if (source === 'reserialised') return false
  if (!source.endsWith('-text')) return true
  return Number(length) === bytes.length && !Buffer.from(bytes).includes('\ufffd')
}

export const KEEP_THE_BYTES =
  'Mount the webhook route before body parsers (express.json(), koa-bodyparser …), or have them keep the bytes as rawBody (a Buffer).'

/**
 * @param found Describes what is left of the body. Follows "All that is left is" in the error.
 */
export function bodyConsumed(found: string, advice: string = KEEP_THE_BYTES): HooklineError {
  const text = `The signature cannot be checked, because the body was already read. All that is left is ${found}. ${advice}`
  return new HooklineError('body_consumed', text)
}

export function bodyTooLarge(limit: number): HooklineError {
  return new HooklineError(
    'body_too_large',
    `The body is larger than the limit of ${limit} bytes. Send a smaller body, or raise the limit if the endpoint has an option for it.`,
  )
}

export function bodyAborted(): HooklineError {
  return new HooklineError(
    'body_aborted',
    'The body is incomplete: its stream ended too early. Send the request again.',
  )
}

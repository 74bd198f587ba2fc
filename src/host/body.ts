/** The bytes of a request's body, where they were found, and the errors of reading them. */

import { HooklineError } from '../protocol/error.ts'

/**
 * Where the bytes of a body were found: the `stream` itself; `rawBody` or `body`, as a Buffer; `rawBody-text` or `body-text`, which was
 * decoded text and is encoded again; `reserialised`, which is `JSON.stringify` of what a parser mounted earlier left; or the `argument` of
 * a direct call.
 */
export type BodySource = 'stream' | 'rawBody' | 'rawBody-text' | 'body' | 'body-text' | 'reserialised' | 'argument'

/** A body that was read in full. */
export interface EndpointBody {
  readonly bytes: Uint8Array
  readonly source: BodySource
}

/**
 * Returns whether a body is, byte for byte, what was sent. Text is exact if it has the length that was sent and contains no U+FFFD, which
 * replaces bytes that were not UTF-8. An object that was serialised again is never exact, because it may differ.
 */
export function isExact(bytes: Uint8Array, source: BodySource, length: unknown): boolean {
  if (source === 'reserialised') return false
  if (!source.endsWith('-text')) return true
  return Number(length) === bytes.length && !Buffer.from(bytes).includes('\ufffd')
}

export const KEEP_THE_BYTES =
  'Mount the webhook route before body parsers (express.json(), koa-bodyparser …), or have them keep the bytes as rawBody (a Buffer).'

/**
 * @param found What is left of the body: the error continues with it after "All that is left is".
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

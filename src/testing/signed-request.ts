/** A request as the destination sends it, for any HTTP client. */

import { USER_AGENT } from '../message/limits.ts'
import { sign } from '../message/signature.ts'

/** The second argument of `fetch`; other clients take its parts. */
export interface SignedRequest {
  readonly method: 'POST'
  readonly headers: { readonly 'content-type': string; readonly 'user-agent': string; readonly 'x-signature': string }
  /** The exact text that was signed. Send it unchanged. */
  readonly body: string
  /** The body as bytes, for `receiver.receive`. */
  readonly bytes: Uint8Array
}

/**
 * Signs a message ("Outbound event delivery", Outbound delivery and Authentication).
 *
 * @param message A message, which is serialised with JSON.stringify, or the text of a body.
 * @param secret The shared secret of the endpoint.
 * @throws TypeError for an empty secret.
 * @example
 * await fetch('http://localhost:3000/webhooks', signedRequest(fixtures.track, secret))
 */
export function signedRequest(message: object | string, secret: string): SignedRequest {
  const body = typeof message === 'string' ? message : JSON.stringify(message)
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      'x-signature': sign(body, secret),
    },
    body,
    bytes: Buffer.from(body),
  }
}

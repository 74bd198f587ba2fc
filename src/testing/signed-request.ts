/** A request as the destination sends it, to hand to whatever client the test uses. */

import { sign } from '../protocol/signature.ts'

/** What `fetch` takes as its second argument, and any other client piece by piece. */
export interface SignedRequest {
  readonly method: 'POST'
  readonly headers: { readonly 'content-type': string; readonly 'user-agent': string; readonly 'x-signature': string }
  /** The exact text that was signed: send it as it is. */
  readonly body: string
  /** The same as bytes, for `receiver.receive`. */
  readonly bytes: Uint8Array
}

/**
 * Signs a message ("Outbound event delivery", Outbound delivery and Authentication).
 *
 * @param message A message, which is serialised with JSON.stringify; or the text of a body, taken as it is.
 * @param secret The shared secret that the endpoint was given.
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
      'user-agent': 'Hookline/1.0',
      'x-signature': sign(body, secret),
    },
    body,
    bytes: Buffer.from(body),
  }
}

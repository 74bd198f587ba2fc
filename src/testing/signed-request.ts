/** A request as the destination sends it, for any HTTP client. */

import { randomUUID } from 'node:crypto'
import { isObject } from '../message/json.ts'
import { USER_AGENT } from '../message/limits.ts'
import { sign } from '../message/signature.ts'
import { invalidOption, kindOf, requireOneOf, requireOptions } from '../options/checks.ts'

/** What to sign. */
export interface SignedRequestOptions {
  /**
   * `body`: all of it. `first`: the first message of a batch alone, as Segment's Actions webhooks sign; then pass a list of messages.
   * Default `body`.
   */
  readonly sign?: 'body' | 'first'
}

/** The second argument of `fetch`; other clients take its parts. */
export interface SignedRequest {
  readonly method: 'POST'
  readonly headers: { readonly 'content-type': string; readonly 'user-agent': string; readonly 'x-signature': string }
  /** The exact text that was signed, or whose first message was. Send it unchanged. */
  readonly body: string
  /** The body as bytes, for `receiver.receive`. */
  readonly bytes: Uint8Array
}

/**
 * Signs a message ("Outbound event delivery", Outbound delivery and Authentication), or a batch.
 *
 * @param message A message or a list of messages, or the text of a body. A message without a `messageId` gets a new one: else a
 *   receiver that knows duplicates would take the next request for a copy. A text is signed as it is.
 * @param secret The shared secret of the endpoint.
 * @throws TypeError for an empty secret, and for `sign: 'first'` without a list of messages.
 * @example
 * await fetch('http://localhost:3000/webhooks', signedRequest(fixtures.track, secret))
 */
export function signedRequest(
  message: object | string,
  secret: string,
  options: SignedRequestOptions = {},
): SignedRequest {
  requireOptions('signedRequest', options, ['sign'])
  const sent = Array.isArray(message) ? message.map(withId) : withId(message)
  const body = typeof sent === 'string' ? sent : JSON.stringify(sent)
  const isFirst = requireOneOf('signedRequest: sign', options.sign ?? 'body', ['body', 'first']) === 'first'
  const signed = isFirst ? JSON.stringify(firstOf(sent)) : body
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': USER_AGENT,
      'x-signature': sign(signed, secret),
    },
    body,
    bytes: Buffer.from(body),
  }
}

/** A request to delete has no id in the specification. */
function withId<T>(message: T): T {
  if (!isObject(message) || 'messageId' in message || message.type === 'delete') return message
  return { ...message, messageId: randomUUID() }
}

function firstOf(messages: object | string): object {
  if (Array.isArray(messages) && messages.length > 0) return messages[0]
  const rule = "must be a list of messages for `sign: 'first'`"
  throw invalidOption('signedRequest: message', rule, kindOf(messages), 'Pass a list with one message or more.')
}

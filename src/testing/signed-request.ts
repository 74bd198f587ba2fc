/** A request as a destination sends it, for any HTTP client. */

import { randomUUID } from 'node:crypto'
import type { DeliveryMethod } from '../handling/delivery.ts'
import { isObject } from '../message/json.ts'
import { invalidOption, isToken, kindOf, requireOneOf, requireOptions, show } from '../options/checks.ts'
import {
  dress,
  KNOWN_SENDERS,
  type KnownSender,
  proofOf,
  readMethod,
  SENDER_NAMES,
  type SenderForm,
} from './known-senders.ts'

/** What to sign, and in whose form. */
export interface SignedRequestOptions {
  /**
   * The service whose form the request has: its fields, its `User-Agent`, and how it proves itself. Default `segment`, which is that of the
   * specification.
   */
  readonly as?: KnownSender
  /** One of the methods of the service. Default `POST`. */
  readonly method?: DeliveryMethod
  /**
   * `body`: all of it. `first`: the first message of a batch alone; then pass a list of messages. Default: as the service signs a list;
   * `body` for anything else, also for a text.
   */
  readonly sign?: 'body' | 'first'
}

/** With `as: 'rudderstack'`, which does not sign. */
export interface HeaderRequestOptions extends Pick<SignedRequestOptions, 'method'> {
  readonly as: 'rudderstack'
  /** The header with the secret. Default `x-webhook-key`. */
  readonly header?: string
}

/** A request without a signature. */
export interface HeaderRequest extends Omit<SignedRequest, 'headers'> {
  readonly headers: Readonly<Record<string, string>>
}

/** The second argument of `fetch`; other clients take its parts. */
export interface SignedRequest {
  readonly method: DeliveryMethod
  readonly headers: { readonly 'content-type': string; readonly 'user-agent': string; readonly 'x-signature': string }
  /** The exact text that was signed, or whose first message was. Send it unchanged. */
  readonly body: string
  /** The body as bytes, for `receiver.receive`. */
  readonly bytes: Uint8Array
}

/**
 * Signs a message ("Outbound event delivery", Outbound delivery and Authentication), or a batch.
 *
 * @param message A message or a list of messages, any other JSON that a service may send, or the text of a body. A message without a `messageId`
 *   gets a new one: else a receiver that knows duplicates would take the next request for a copy. A text is sent as it is.
 * @param secret The shared secret of the endpoint; of `rudderstack`, the value of the header.
 * @throws TypeError for an empty secret, and for `sign: 'first'` without a list of messages.
 * @example
 * await fetch('http://localhost:3000/webhooks', signedRequest(fixtures.track, secret))
 */
export function signedRequest(message: object | string, secret: string, options?: SignedRequestOptions): SignedRequest
export function signedRequest(message: object | string, secret: string, options: HeaderRequestOptions): HeaderRequest
export function signedRequest(
  message: object | string,
  secret: string,
  options: SignedRequestOptions | HeaderRequestOptions = {},
): SignedRequest | HeaderRequest {
  requireOptions('signedRequest', options, ['as', 'method', 'sign', 'header'])
  const { as = 'segment', method, sign, header } = options as SignedRequestOptions & HeaderRequestOptions
  const form = KNOWN_SENDERS[requireOneOf('signedRequest: as', as, SENDER_NAMES)]
  if (sign !== undefined) requireOneOf('signedRequest: sign', sign, ['body', 'first'])
  if (sign !== undefined && form.signs === 'header') {
    throw invalidOption('signedRequest: sign', 'needs a sender that signs', as, 'Leave it out.')
  }
  if (header !== undefined) requireKeyHeader(header, form)
  const dressed = dress(message, form)
  const sent = as !== 'segment' ? dressed : Array.isArray(dressed) ? dressed.map(withId) : withId(dressed)
  if (sign === 'first') requireList(sent)
  const body = typeof sent === 'string' ? sent : JSON.stringify(sent)
  const signs = form.signs === 'header' ? 'header' : (sign ?? form.signs)
  const proof = proofOf(body, sent, secret, signs)
  return {
    method: readMethod('signedRequest: method', as, method),
    headers: {
      'content-type': 'application/json',
      'user-agent': form.userAgent,
      [(header ?? form.proofHeader).toLowerCase()]: proof,
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

function requireKeyHeader(header: unknown, { signs }: SenderForm): void {
  const isFree = isToken(header) && !['content-type', 'user-agent'].includes(header.toLowerCase())
  if (isFree && signs === 'header') return
  const rule = isFree ? 'needs a sender that does not sign' : 'must be the name of a header that the request has not'
  throw invalidOption(
    'signedRequest: header',
    rule,
    show(header),
    `Pass for example { as: 'rudderstack', header: '${KNOWN_SENDERS.rudderstack.proofHeader}' }.`,
  )
}

function requireList(messages: unknown): void {
  if (Array.isArray(messages) && messages.length > 0) return
  const rule = "must be a list of messages for `sign: 'first'`"
  throw invalidOption('signedRequest: message', rule, kindOf(messages), 'Pass a list with one message or more.')
}

/** A request as a destination sends it, for any HTTP client. */

import { randomUUID } from 'node:crypto'
import { invalidOption, isToken, requireOneOf, requireOptions, show } from '../kit/checks.ts'
import { isObject } from '../protocol/parse.ts'
import type { DeliveryMethod } from '../receive/delivery.ts'
import {
  createProof,
  KNOWN_SENDERS,
  type KnownSender,
  readMethod,
  SENDER_NAMES,
  type SenderForm,
  toSenderForm,
} from './known-senders.ts'

/** Options of `signedRequest`. */
export interface SignedRequestOptions {
  /**
   * The service to imitate. It determines the fields of the messages, the `User-Agent`, and how the request proves its sender. Default
   * `segment`, which follows the specification.
   */
  readonly as?: KnownSender
  /** The HTTP method, which must be a method that the service uses. Default `POST`. */
  readonly method?: DeliveryMethod
}

/** Options of `signedRequest` with `as: 'rudderstack'`, a service that does not sign its requests. */
export interface HeaderRequestOptions extends Pick<SignedRequestOptions, 'method'> {
  /** The service that sends the secret as a header. */
  readonly as: 'rudderstack'
  /** The name of the header with the secret. Default `x-webhook-key`. */
  readonly header?: string
}

/** A request that sends the secret as a header instead of a signature. */
export interface HeaderRequest extends Omit<SignedRequest, 'headers'> {
  readonly headers: Readonly<Record<string, string>>
}

/** A signed request. Pass it to `fetch` as the second argument, or pass its parts to another client. */
export interface SignedRequest {
  readonly method: DeliveryMethod
  readonly headers: { readonly 'content-type': string; readonly 'user-agent': string; readonly 'x-signature': string }
  /** The exact text that was signed. Send it unchanged. */
  readonly body: string
  /** The body as bytes, for `receiver.receive`. */
  readonly bytes: Uint8Array
}

/**
 * Signs a message ("Outbound event delivery", Outbound delivery and Authentication), or a batch as a whole.
 *
 * @param message A message or a list of messages, any other JSON that a service may send, or the text of a body, which is sent as it is. A
 *   message without a `messageId` gets a new id, so that a receiver with deduplication does not treat the next such request as a copy.
 * @param secret The shared secret of the endpoint; for `rudderstack`, the value of the header.
 * @throws TypeError for an empty secret or an invalid option.
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
  requireOptions('signedRequest', options, ['as', 'method', 'header'])
  const { as = 'segment', method, header }: SignedRequestOptions & Pick<HeaderRequestOptions, 'header'> = options
  const form = KNOWN_SENDERS[requireOneOf('signedRequest: as', as, SENDER_NAMES)]
  if (header !== undefined) requireKeyHeader(header, form)
  const sent = as === 'segment' ? addIds(message) : toSenderForm(message, form)
  const body = typeof sent === 'string' ? sent : JSON.stringify(sent)
  const proof = createProof(body, secret, form.signs)
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

function addIds(message: object | string): unknown {
  return Array.isArray(message) ? message.map(addId) : addId(message)
}

/** Gives a message without an id a new id. A `delete` stays unchanged, because it has no id in the specification. */
function addId(message: unknown): unknown {
  if (!isObject(message) || 'messageId' in message || message.type === 'delete') return message
  return { ...message, messageId: randomUUID() }
}

function requireKeyHeader(header: unknown, { signs }: SenderForm): void {
  const isFree = isToken(header) && !['content-type', 'user-agent'].includes(header.toLowerCase())
  if (isFree && signs === 'header') return
  const rule = isFree
    ? 'needs a sender that does not sign'
    : 'must be the name of a header that the request does not already have'
  const advice = `Pass, for example, { as: 'rudderstack', header: '${KNOWN_SENDERS.rudderstack.proofHeader}' }.`
  throw invalidOption('signedRequest: header', rule, isFree ? undefined : show(header), advice)
}

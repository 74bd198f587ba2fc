/** The services whose webhooks Hookline can receive, and the form of their requests, as far as their documentation and code show it. */

import { randomUUID } from 'node:crypto'
import { requireOneOf, requireSecret } from '../kit/checks.ts'
import { USER_AGENT } from '../protocol/limits.ts'
import { isObject, type Json } from '../protocol/parse.ts'
import { sign } from '../protocol/signature.ts'
import { isMessageType } from '../protocol/type-table.ts'
import type { DeliveryMethod } from '../receive/delivery.ts'

/** A service that sends messages: Segment's Webhooks, Segment's Webhooks (Actions), Customer.io's Data Pipelines or RudderStack. */
export type KnownSender = 'segment' | 'segment-actions' | 'customer.io' | 'rudderstack'

export interface SenderForm {
  readonly methods: readonly [DeliveryMethod, ...DeliveryMethod[]]
  readonly userAgent: string
  /** `body` if the sender signs the body; `header` if it sends the secret itself as a header. */
  readonly signs: 'body' | 'header'
  /** The header with the signature or the secret. For the secret, the user may choose another header. */
  readonly proofHeader: string
  /** Fields that the sender adds to each message; undefined if it delivers messages as the specification shows them. */
  readonly fields?: Json
}

const proofHeader = 'X-Signature'
const recorded = { channel: 'server', integrations: {} }

export const KNOWN_SENDERS: Readonly<Record<KnownSender, SenderForm>> = {
  segment: { methods: ['POST'], userAgent: USER_AGENT, signs: 'body', proofHeader },
  'segment-actions': {
    methods: ['POST', 'PUT', 'PATCH'],
    userAgent: 'Segment (Actions)',
    signs: 'body',
    proofHeader,
    fields: { ...recorded, version: 2 },
  },
  // How Customer.io signs a batch is not documented.
  'customer.io': {
    methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
    userAgent: USER_AGENT,
    signs: 'body',
    proofHeader,
    fields: { ...recorded, version: 2 },
  },
  rudderstack: {
    methods: ['POST', 'PUT', 'PATCH'],
    userAgent: 'RudderLabs',
    signs: 'header',
    proofHeader: 'x-webhook-key',
    fields: { ...recorded, integrations: { All: true } },
  },
}

export const SENDER_NAMES: readonly KnownSender[] = Object.keys(KNOWN_SENDERS) as KnownSender[]

/** Gives a message, or each message of a list, the form of a sender. Any other value is a body of the user's own, and stays unchanged. */
export function toSenderForm(value: unknown, form: Pick<SenderForm, 'fields'>): unknown {
  if (Array.isArray(value)) return value.map((each) => toSenderForm(each, form))
  const { fields } = form
  if (fields === undefined || !isObject(value) || !isMessageType(value.type) || value.type === 'delete') return value
  const { 'Previous ID': previousId, 'User ID': userId, version: _, ...own } = value
  const timestamp = value.timestamp ?? new Date().toISOString()
  const times = { originalTimestamp: timestamp, receivedAt: timestamp, sentAt: timestamp }
  const message: Json = { ...fields, ...times, ...own, timestamp }
  message.messageId ??= randomUUID()
  message.context ??= {}
  if (value.type !== 'alias') return message
  // These senders pass an alias on as it was recorded, with its ids in the spelling of the client libraries.
  return { ...message, previousId: own.previousId ?? previousId, userId: own.userId ?? userId }
}

/** Creates the value of the header that proves who sent a body: its signature, or the secret itself. */
export function createProof(body: string, secret: string, signs: SenderForm['signs']): string {
  if (signs === 'body') return sign(body, secret)
  requireSecret('secret', secret, 'the value of the header')
  return secret
}

/** Returns the HTTP method if the sender uses it, and throws if not. Without a method, returns the first one of the sender. */
export function readMethod(name: string, as: KnownSender, method: unknown): DeliveryMethod {
  const { methods } = KNOWN_SENDERS[requireOneOf('as', as, SENDER_NAMES)]
  return method === undefined ? methods[0] : requireOneOf<DeliveryMethod>(name, method, methods)
}

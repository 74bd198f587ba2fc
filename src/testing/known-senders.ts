/** Services that send these messages: the form of their requests, as far as their documentation and code show it. */

import { randomUUID } from 'node:crypto'
import { invalidOption, kindOf, requireOneOf, requireSecret } from '../kit/checks.ts'
import { USER_AGENT } from '../protocol/limits.ts'
import { isObject, type Json } from '../protocol/parse.ts'
import { sign } from '../protocol/signature.ts'
import { isMessageType } from '../protocol/type-table.ts'
import type { DeliveryMethod } from '../receive/delivery.ts'

/** Segment's Webhooks, Segment's Webhooks (Actions), Customer.io's Data Pipelines, RudderStack. */
export type KnownSender = 'segment' | 'segment-actions' | 'customer.io' | 'rudderstack'

export interface SenderForm {
  readonly methods: readonly [DeliveryMethod, ...DeliveryMethod[]]
  readonly userAgent: string
  /** `header` for one that does not sign, and sends the secret as a header. */
  readonly signs: 'body' | 'header'
  /** The header with its signature, or with the secret: that one has any name. */
  readonly proofHeader: string
  /** Fields of each message beside its own; undefined where the message is delivered as the specification shows it. */
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
  // How it signs a batch is not documented.
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

/** Gives a message the form of a sender. What is none of the seven messages is a body of the user, and stays as it is. */
export function dress(value: unknown, form: Pick<SenderForm, 'fields'>): unknown {
  if (Array.isArray(value)) return value.map((each) => dress(each, form))
  const { fields } = form
  if (fields === undefined || !isObject(value) || !isMessageType(value.type) || value.type === 'delete') return value
  const { 'Previous ID': previousId, 'User ID': userId, version: _, ...own } = value
  const timestamp = value.timestamp ?? new Date().toISOString()
  const times = { originalTimestamp: timestamp, receivedAt: timestamp, sentAt: timestamp }
  const dressed: Json = { ...fields, ...times, ...own, timestamp }
  dressed.messageId ??= randomUUID()
  dressed.context ??= {}
  // As it was recorded: in the spelling of the libraries.
  if (value.type === 'alias')
    Object.assign(dressed, { previousId: own.previousId ?? previousId, userId: own.userId ?? userId })
  return dressed
}

/** Makes what proves a body: the signature of it, or the secret itself. */
export function proofOf(body: string, secret: string, signs: SenderForm['signs']): string {
  if (signs === 'body') return sign(body, secret)
  requireSecret('secret', secret, 'the value of the header')
  return secret
}

/** Checks a method, by default the first that a sender has. */
export function readMethod(name: string, as: KnownSender, method: unknown): DeliveryMethod {
  const { methods } = KNOWN_SENDERS[requireOneOf('as', as, SENDER_NAMES)]
  if (method === undefined) return methods[0]
  const found = methods.find((each) => each === method)
  if (found !== undefined) return found
  throw invalidOption(name, `must be one that ${as} sends`, kindOf(method), `Pass one of ${methods.join(', ')}.`)
}

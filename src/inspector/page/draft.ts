/** A message as the fields of a form, and back. */

import type { MessageType } from '../../message/message.ts'
import type { Tampering } from '../../sender/tamper.ts'
import { fixtures } from '../../testing/fixtures.ts'

type TextField = 'userId' | 'anonymousId' | 'previousId' | 'groupId' | 'event' | 'name' | 'category'

type JsonField = 'properties' | 'traits' | 'context'

export type Field = TextField | JsonField

export interface Draft {
  readonly type: MessageType
  /** What each field holds. Empty ones are not sent. */
  readonly values: Readonly<Partial<Record<Field, string>>>
  readonly rest: Readonly<Record<string, unknown>>
}

export const FIELDS: Readonly<Record<MessageType, readonly Field[]>> = {
  track: ['userId', 'anonymousId', 'event', 'properties', 'context'],
  identify: ['userId', 'anonymousId', 'traits', 'context'],
  page: ['userId', 'anonymousId', 'name', 'category', 'properties', 'context'],
  screen: ['userId', 'anonymousId', 'name', 'category', 'properties', 'context'],
  group: ['userId', 'anonymousId', 'groupId', 'traits', 'context'],
  alias: ['previousId', 'userId', 'context'],
  delete: ['userId'],
}

export const LABELS: Readonly<Record<Field, string>> = {
  userId: 'User id',
  anonymousId: 'Anonymous id',
  previousId: 'Previous id',
  groupId: 'Group id',
  event: 'Event',
  name: 'Name',
  category: 'Category',
  properties: 'Properties',
  traits: 'Traits',
  context: 'Context',
}

export function isJson(field: Field): field is JsonField {
  return field === 'properties' || field === 'traits' || field === 'context'
}

export function sampleOf(type: MessageType): Draft {
  const { timestamp: _, ...message } = fixtures[type]
  return toDraft(message) as Draft
}

export function withType(draft: Draft, type: MessageType): Draft {
  const before = sampleOf(draft.type)
  const entered = Object.entries(draft.values).filter(([field, text]) => text !== before.values[field as Field])
  return { type, values: { ...sampleOf(type).values, ...Object.fromEntries(entered) }, rest: draft.rest }
}

/** Puts a message into the form; undefined when the form cannot show it. */
export function toDraft(message: unknown): Draft | undefined {
  if (!isObject(message)) return undefined
  const { type, version: _, ...others } = message
  if (typeof type !== 'string' || !Object.hasOwn(FIELDS, type)) return undefined
  const rest: Record<string, unknown> = type === 'alias' ? withPlainIds(others) : others
  const values: Partial<Record<Field, string>> = {}
  for (const field of FIELDS[type as MessageType]) {
    const value = rest[field]
    delete rest[field]
    if (value === undefined || value === null) continue
    if (isJson(field) ? !isObject(value) : typeof value !== 'string') return undefined
    values[field] = isJson(field) ? JSON.stringify(value, null, 2) : (value as string)
  }
  return { type: type as MessageType, values, rest }
}

/** An alias travels with its ids as `Previous ID` and `User ID`; the form shows each of them once. */
function withPlainIds(message: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { 'Previous ID': previousId, 'User ID': userId, ...rest } = message
  return { previousId, userId, ...rest }
}

/** A message, and what is wrong with the fields that it could not be made of. */
export interface Made {
  readonly message: Readonly<Record<string, unknown>>
  readonly errors: Readonly<Partial<Record<Field, string>>>
}

export function toMessage({ type, values, rest }: Draft): Made {
  const message: Record<string, unknown> = { type }
  const errors: Partial<Record<Field, string>> = {}
  for (const field of FIELDS[type]) {
    const text = values[field] ?? ''
    if (text.trim() === '') continue
    if (!isJson(field)) {
      message[field] = text
      continue
    }
    const { value, error } = readJson(text)
    if (error !== undefined) errors[field] = error
    else if (!isObject(value)) errors[field] = 'This must be a JSON object: { "name": "value" }.'
    else message[field] = value
  }
  return { message: { ...message, ...rest }, errors }
}

export function readJson(text: string): { readonly value?: unknown; readonly error?: string } {
  try {
    return { value: JSON.parse(text) }
  } catch (error) {
    return { error: `This is not JSON: ${(error as Error).message}.` }
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const TAMPERINGS: Readonly<Record<Tampering, string>> = {
  'bad-signature': 'Changes a digit of the signature. A correct endpoint refuses it.',
  'wrong-secret': 'Signs with another secret. A correct endpoint refuses it.',
  'no-signature': 'Leaves the signature out. A correct endpoint refuses it.',
  truncated: 'Cuts the last byte of the body after signing. A correct endpoint refuses it.',
  reserialised:
    'Writes the JSON with other spaces after signing, as a body parser does. A correct endpoint refuses it.',
  chunked: 'Sends the body in chunks, without its length. A correct endpoint accepts it.',
  repeated: 'Sends the request twice. A correct endpoint accepts both, and handles one.',
}

/** Reads what real senders write in place of the documented form: ids and times that are numbers, empty ids, null for nothing. */

import type { Json } from './json.ts'
import { timestampOf } from './timestamp.ts'
import { CALL_OBJECTS } from './type-table.ts'

const IDS = ['userId', 'anonymousId', 'groupId', 'messageId', 'previousId', 'Previous ID', 'User ID'] as const
const NULLABLE = [...CALL_OBJECTS, 'timestamp'] as const

/**
 * Rewrites the fields of a received message or call in the documented form, before it is checked. A number becomes the decimal text of an
 * id, or the ISO 8601 of a time. Null in place of an object or a time is deleted, as is an empty id that the message can do without.
 */
export function normalise(message: Json): void {
  for (const field of IDS) {
    const value = message[field]
    if (typeof value === 'number') message[field] = readId(value) ?? value
    else if (value === '' && isSpare(field, message)) Reflect.deleteProperty(message, field)
  }
  for (const field of NULLABLE) if (message[field] === null) Reflect.deleteProperty(message, field)
  const { timestamp } = message
  if (typeof timestamp === 'number') message.timestamp = timestampOf(timestamp) ?? timestamp
}

/** An empty id that is required stays, so that the error names what was found. */
function isSpare(field: string, { type, anonymousId }: Json): boolean {
  if (field !== 'userId') return field === 'anonymousId' || field === 'messageId'
  return type !== 'delete' && type !== 'alias' && readId(anonymousId) !== undefined
}

/**
 * Reads an id: text, or a number as its decimal text. Undefined for an empty text and anything else.
 *
 * A number beyond 2^53 - 1 is no id: JSON.parse has lost its last digits, so that two users would be one.
 */
export function readId(value: unknown): string | undefined {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}

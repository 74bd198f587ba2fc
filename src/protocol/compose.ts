/** Composes messages from the fields of calls, and serialises messages for delivery. */

import { randomUUID } from 'node:crypto'
import { invalidField, kindOf } from './error.ts'
import type { Message, MessageType } from './message.ts'
import { requireMessage } from './parse.ts'
import { toTimestamp } from './timestamp.ts'
import { CALL_OBJECTS } from './type-table.ts'

/**
 * Composes the message of a call ("Outbound event delivery", Delivered message fields). Sets `version` 1 and a timestamp in UTC; adds
 * `messageId` and `context` when the call has none. A `delete` gets only its three fields.
 */
export function compose(type: MessageType, fields: object, now: number): Message {
  const given = fields as Readonly<Record<string, unknown>>
  const timestamp = given.timestamp === undefined ? new Date(now).toISOString() : toTimestamp(given.timestamp)
  if (timestamp === undefined) {
    const rule = 'must be a Date or an ISO 8601 string'
    throw invalidField(
      'message_invalid',
      'timestamp',
      rule,
      kindOf(given.timestamp),
      'a time such as 2026-01-15T09:30:00Z',
    )
  }
  for (const path of CALL_OBJECTS) requirePlain(path, given[path])
  if (hasToJson(given)) {
    throw invalidField('message_invalid', 'toJSON', 'must not be a function', 'a function', 'plain data')
  }
  return requireMessage(
    type === 'delete' ? { type, userId: given.userId, timestamp } : complete(type, given, timestamp),
  )
}

/** Refuses an object with a `toJSON` method: JSON.stringify would write the result of the method instead of the checked fields. */
function requirePlain(path: string, value: unknown): void {
  if (hasToJson(value)) {
    throw invalidField(
      'message_invalid',
      path,
      'must be a plain object',
      'an object with a toJSON method',
      'its fields',
    )
  }
}

function hasToJson(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
}

/** Completes the fields of a call with the fields that only a message has. */
function complete(
  type: MessageType,
  given: Readonly<Record<string, unknown>>,
  timestamp: string,
): Record<string, unknown> {
  const message: Record<string, unknown> = { version: 1, type, ...given, timestamp }
  message.version = 1 // `version` and `type` come first in the JSON, and a call cannot replace them.
  message.type = type
  message.messageId ??= randomUUID()
  message.context ??= {}
  return message
}

/**
 * Serialises a message to the bytes that are signed and sent. The bytes of an alias contain `Previous ID` in place of
 * `previousId`, and `User ID` in addition to `userId` ("Outbound event delivery", Delivered message fields).
 */
export function serialise(message: Message): Buffer {
  if (message.type !== 'alias') return Buffer.from(JSON.stringify(message))
  const { previousId: _, ...alias } = message
  return Buffer.from(JSON.stringify(alias))
}

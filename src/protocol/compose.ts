/** Makes the message that is delivered out of what a caller said. */

import { randomUUID } from 'node:crypto'
import { HooklineError } from './error.ts'
import type { Message, MessageType } from './message.ts'
import { checkMessage } from './parse.ts'
import { toTimestamp } from './timestamp.ts'

/**
 * The message of a call ("Outbound event delivery", Delivered message fields): `version` 1, a timestamp in UTC, a
 * `messageId` and a `context` are there, also when the caller gave none. A `delete` has its three fields only.
 *
 * @param now Milliseconds since the epoch, for a call without a timestamp.
 * @throws HooklineError `message_invalid` with the field as `path`.
 */
export function compose(type: MessageType, fields: object, now: number): Message {
  const given = fields as Readonly<Record<string, unknown>>
  const timestamp = given.timestamp === undefined ? new Date(now).toISOString() : toTimestamp(given.timestamp)
  if (timestamp === undefined) throw invalid('timestamp', 'must be a Date or ISO 8601: 2026-01-15T09:30:00Z')
  for (const path of PLAIN) requirePlain(path, given[path])
  requirePlain('toJSON', given)
  return checkMessage(type === 'delete' ? { type, userId: given.userId, timestamp } : fill(type, given, timestamp))
}

const PLAIN = ['properties', 'traits', 'context', 'integrations'] as const

/** What has a `toJSON` would be written as something else than was checked. */
function requirePlain(path: string, value: unknown): void {
  if (typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function') {
    throw invalid(path, 'must be a plain object, without toJSON')
  }
}

function invalid(path: string, fault: string): HooklineError {
  return new HooklineError('message_invalid', `${path} ${fault}.`, { path })
}

function fill(type: MessageType, given: Readonly<Record<string, unknown>>, timestamp: string): Record<string, unknown> {
  const message: Record<string, unknown> = { version: 1, type, ...given, timestamp }
  message.version = 1 // Whatever was given.
  message.type = type
  message.messageId ??= randomUUID()
  message.context ??= {}
  return message
}

/**
 * The bytes of a message, as they are signed and sent. The ids of an alias travel as `Previous ID` and `User ID`
 * ("Outbound event delivery", Delivered message fields).
 */
export function serialise(message: Message): Buffer {
  if (message.type !== 'alias') return Buffer.from(JSON.stringify(message))
  const { previousId: _, ...alias } = message
  return Buffer.from(JSON.stringify(alias))
}

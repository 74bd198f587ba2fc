/** Makes the message that is delivered out of what a caller said. */

import { randomUUID } from 'node:crypto'
import { HooklineError } from './error.ts'
import type { Message, MessageType } from './message.ts'
import { checkMessage } from './parse.ts'
import { toTimestamp } from './timestamp.ts'

/**
 * A message, ready to be serialised ("Outbound event delivery", Delivered message fields): `version` 1, a timestamp in
 * UTC, a `messageId` and a `context` are there, also when the caller gave none. A `delete` has its three fields only.
 *
 * @param now Milliseconds since the epoch, for a call without a timestamp.
 * @throws HooklineError `message_invalid` with the field as `path`.
 */
export function compose(type: MessageType, fields: object, now: number): Message {
  const { timestamp, ...rest } = fields as Readonly<Record<string, unknown>>
  const time = timestamp === undefined ? new Date(now).toISOString() : toTimestamp(timestamp)
  if (time === undefined) {
    const path = 'timestamp'
    throw new HooklineError('message_invalid', 'timestamp must be a Date or ISO 8601, such as 2026-01-15T09:30:00Z.', {
      path,
    })
  }
  const message = type === 'delete' ? { type, userId: rest.userId, timestamp: time } : fill(type, rest, time)
  checkMessage({ ...message }) // It completes the spellings of an alias, which is for receivers.
  return message as unknown as Message
}

function fill(
  type: MessageType,
  fields: Readonly<Record<string, unknown>>,
  timestamp: string,
): Record<string, unknown> {
  const message: Record<string, unknown> = { version: 1, ...fields, type, timestamp }
  message.messageId ??= randomUUID()
  message.context ??= {}
  if (type === 'alias') spell(message)
  return message
}

/** The ids of an alias travel under key names with spaces ("Outbound event delivery", Delivered message fields). */
function spell(alias: Record<string, unknown>): void {
  alias['Previous ID'] ??= alias.previousId
  alias['User ID'] ??= alias.userId
  alias.userId ??= alias['User ID']
  delete alias.previousId
}

/** The bytes to send for a message: as they are, or changed and written anew. */

import { randomUUID } from 'node:crypto'
import type { Json } from '../../message/json.ts'
import { parse } from '../../message/parse.ts'
import { systemClock } from '../../time/clock.ts'
import { distinctTime } from '../../time/distinct.ts'
import { applyEdit, type Edit } from './edits.ts'

/** A message that is ready to be signed and sent. */
export interface Prepared {
  readonly bytes: Buffer
  readonly message: Json
}

/** How to change each message. */
export interface Changes {
  readonly edits: readonly Edit[]
  /** Whether to give it a `messageId` and a `timestamp` of its own: a receiver takes identical bytes for one message. */
  readonly isCopy: boolean
}

/**
 * Prepares a message. Its exact bytes are kept unless something is changed.
 *
 * @throws HooklineError for bytes that are no message. What the edits make of it is not checked.
 * @throws UsageError for an edit that does not fit the message.
 */
export function prepare(bytes: Buffer, { edits, isCopy }: Changes): Prepared {
  const found = parse(bytes) as unknown as Json
  if (edits.length === 0 && !isCopy) return { bytes, message: found }
  const message = JSON.parse(new TextDecoder().decode(bytes)) as Json // As it was written: parse() adds spellings.
  if (isCopy) Object.assign(message, ownFields(message))
  for (const edit of edits) applyEdit(message, edit)
  return { bytes: Buffer.from(JSON.stringify(message)), message }
}

/** A `delete` has no field but its three ("Outbound event delivery", Delivered message fields): its time tells copies apart. */
function ownFields({ type, userId }: Json): Json {
  if (type !== 'delete') return { messageId: randomUUID(), timestamp: new Date(systemClock.now()).toISOString() }
  return { timestamp: new Date(distinctTime(systemClock, String(userId))).toISOString() }
}

/** Changes copies of messages, so that a receiver does not recognise them as duplicates. */

import { randomUUID } from 'node:crypto'
import type { Json } from '../../json.ts'

/**
 * Returns new values for the fields that distinguish a copy from the original. A `delete` gets only a new timestamp, because a `delete` has
 * no `messageId` ("Outbound event delivery", Delivered message fields).
 */
export function ownFields({ type }: Json): Json {
  if (type !== 'delete') return { messageId: randomUUID(), timestamp: new Date().toISOString() }
  last = Math.max(Date.now(), last + 1)
  return { timestamp: new Date(last).toISOString() }
}

let last = 0

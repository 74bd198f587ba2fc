/** Copies of messages that a receiver takes for messages of their own. */

import { randomUUID } from 'node:crypto'
import type { Json } from '../../json.ts'

/**
 * Returns the fields that a copy gets in place of those it has. A `delete` has no field but its three ("Outbound event delivery", Delivered
 * message fields): its time tells copies apart.
 */
export function ownFields({ type }: Json): Json {
  if (type !== 'delete') return { messageId: randomUUID(), timestamp: new Date().toISOString() }
  last = Math.max(Date.now(), last + 1)
  return { timestamp: new Date(last).toISOString() }
}

let last = 0

/** Copies of messages that a receiver takes for messages of their own. */

import { randomUUID } from 'node:crypto'
import type { Json } from '../message/json.ts'
import { systemClock } from '../time/clock.ts'
import { distinctTime } from '../time/distinct.ts'

/**
 * Returns the fields that a copy gets in place of those it has. A `delete` has no field but its three ("Outbound event delivery", Delivered
 * message fields): its time tells copies apart.
 */
export function ownFields({ type, userId }: Json): Json {
  if (type !== 'delete') return { messageId: randomUUID(), timestamp: new Date(systemClock.now()).toISOString() }
  return { timestamp: new Date(distinctTime(systemClock, String(userId))).toISOString() }
}

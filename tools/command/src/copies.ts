/** Makes copies of messages that a receiver does not recognise as duplicates. */

import { randomUUID } from 'node:crypto'
import type { Json } from '../../json.ts'

/**
 * Returns the fields that distinguish a copy from the original. A `delete` may have only its three fields ("Outbound event delivery",
 * Delivered message fields), so its time distinguishes copies.
 */
export function ownFields({ type }: Json): Json {
  if (type !== 'delete') return { messageId: randomUUID(), timestamp: new Date().toISOString() }
  last = Math.max(Date.now(), last + 1)
  return { timestamp: new Date(last).toISOString() }
}

let last = 0

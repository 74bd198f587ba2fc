/** Messages that the tests send. */

import type { TrackMessage } from '../../../../src/protocol/message.ts'

let count = 0

export function track(event: string, more: object = {}): TrackMessage {
  count += 1
  return {
    version: 1,
    type: 'track',
    event,
    userId: 'ada',
    messageId: `message-${process.pid}-${count}`,
    timestamp: new Date().toISOString(),
    properties: { order_id: `order-${count}`, total: 39.95, currency: 'EUR' },
    ...more,
  } as TrackMessage
}

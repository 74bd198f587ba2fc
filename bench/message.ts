/** What is received and sent: a track message of a given size, and an identify message. */

import { createHmac } from 'node:crypto'

/** The shared secret. */
export const secret = 'correct horse battery staple'

/** The event name of the track message. */
export const event = 'Order Completed'

/** The write key of the source, and what a client shows. */
export const writeKey = 'a write key of the benchmark'
export const authorization: string = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`

/** The path of the endpoint that is never answered. */
export const hangingPath = '/hanging'

/** What each message that is sent holds once. */
export const marker: string = `"event":${JSON.stringify(event)}`

interface TrackMessage {
  readonly version: 1
  readonly type: 'track'
  readonly userId: string
  readonly messageId: string
  readonly timestamp: string
  readonly event: string
  readonly properties: Readonly<Record<string, unknown>>
}

/** The bytes of a track message, exactly `size` of them (300 at least), as JSON in which no character is escaped. Each index is another message. */
export function trackMessage(size: number, index = 0): Buffer {
  const products: object[] = []
  const properties = { order_id: 'order-1', total: 39.95, currency: 'EUR', products, note: '' }
  const message: TrackMessage = {
    version: 1,
    type: 'track',
    userId: 'user-1',
    messageId: `6f0d7c1e-52ab-4c36-9d0e-${String(index).padStart(12, '0')}`,
    timestamp: '2026-01-15T09:30:00.000Z',
    event,
    properties,
  }
  const missing = (): number => size - Buffer.byteLength(JSON.stringify(message))
  while (missing() > 200) products.push(product(products.length))
  properties.note = 'x'.repeat(missing())
  return Buffer.from(JSON.stringify(message))
}

/** A track message of 1 KB with the `context` that a sender adds. */
export const message: TrackMessage = JSON.parse(trackMessage(1024 - ',"context":{}'.length).toString())

/** An identify message that reports one audience. */
export const identifyMessage = {
  version: 1,
  type: 'identify',
  userId: 'user-1',
  messageId: '6f0d7c1e-52ab-4c36-9d0e-8b3a1f4d7e22',
  timestamp: '2026-01-15T09:30:00.000Z',
  traits: { email: 'ada@example.com', name: 'Ada Lovelace', plan: 'pro', logins: 12, audience_7: true },
}

function product(index: number): object {
  return {
    product_id: `product-${index}`,
    name: 'Wool blanket, 130 x 180 cm',
    price: 19.5,
    quantity: 2,
    categories: ['home', 'living'],
  }
}

/** The headers that make a server accept the body. */
export function signedHeaders(body: Uint8Array): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-signature': createHmac('sha1', secret).update(body).digest('hex'),
  }
}

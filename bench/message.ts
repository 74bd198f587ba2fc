/** The message that every server gets: a signed track message of a given size. */

import { createHmac } from 'node:crypto'

/** The shared secret. */
export const secret = 'correct horse battery staple'

/** The event name of the message. */
export const event = 'Order Completed'

/** The bytes of a track message, exactly `size` of them (300 at least), as JSON in which no character is escaped. Each index is another message. */
export function trackMessage(size: number, index = 0): Buffer {
  const products: object[] = []
  const message = {
    version: 1,
    type: 'track',
    userId: 'user-1',
    messageId: `6f0d7c1e-52ab-4c36-9d0e-${String(index).padStart(12, '0')}`,
    timestamp: '2026-01-15T09:30:00.000Z',
    event,
    properties: { order_id: 'order-1', total: 39.95, currency: 'EUR', products, note: '' },
  }
  const missing = (): number => size - Buffer.byteLength(JSON.stringify(message))
  while (missing() > 200) products.push(product(products.length))
  message.properties.note = 'x'.repeat(missing())
  return Buffer.from(JSON.stringify(message))
}

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

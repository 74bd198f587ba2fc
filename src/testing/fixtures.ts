/** Example messages, one of each of the seven types, as a destination delivers them. */

import type { Message } from '../protocol/message.ts'

const timestamp = '2026-01-15T09:30:00.000Z'

/**
 * A message of each type, with every field that the specification names ("Outbound event delivery", Delivered message fields). Spread a
 * message to change it: `{ ...fixtures.track, event: 'Order Refunded' }`.
 */
export const fixtures = {
  page: {
    version: 1,
    type: 'page',
    userId: 'user-1',
    timestamp,
    properties: {
      path: '/pricing',
      referrer: 'https://search.example/?q=webhooks',
      title: 'Pricing',
      url: 'https://shop.example/pricing',
    },
  },
  screen: {
    version: 1,
    type: 'screen',
    userId: 'user-1',
    timestamp,
    name: 'Basket',
    context: {
      device: { model: 'Pixel 9', type: 'android' },
      os: { name: 'Android', version: '16' },
      app: { build: '42', name: 'Shop', version: '3.1.0' },
    },
  },
  identify: {
    version: 1,
    type: 'identify',
    userId: 'user-1',
    timestamp,
    traits: { name: 'Ada Lovelace', email: 'ada@shop.example', logins: 5, high_value_users: true },
  },
  track: {
    version: 1,
    type: 'track',
    userId: 'user-1',
    timestamp,
    event: 'Order Completed',
    properties: { order_id: 'order-1', total: 39.95, currency: 'EUR' },
  },
  alias: {
    version: 1,
    type: 'alias',
    userId: 'user-1',
    timestamp,
    previousId: 'anonymous-1',
    'Previous ID': 'anonymous-1',
    'User ID': 'user-1',
  },
  group: {
    version: 1,
    type: 'group',
    userId: 'user-1',
    timestamp,
    groupId: 'group-1',
    traits: { name: 'Analytical Engines', 'Employee Count': 12 },
  },
  delete: { type: 'delete', userId: 'user-1', timestamp },
} as const satisfies { readonly [Type in Message['type']]: Extract<Message, { type: Type }> }

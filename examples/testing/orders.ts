/** Keeps the orders that webhooks report, in a store: the same receiver for the app of every framework. */

import { createReceiver, type Receiver } from 'hookline'

/** A completed order. */
interface Order {
  readonly userId: string | null | undefined
  readonly orderId: unknown
  readonly total: unknown
}

/** Where orders are kept. In production this is a table with a unique column for the delivery. */
export interface OrderStore {
  /** Saves the order of a delivery, once: a sender that got no answer sends the delivery again. */
  save(deliveryId: string, order: Order): Promise<void>
  all(): readonly Order[]
}

/** Creates an empty store. */
export function createOrderStore(): OrderStore {
  const byDelivery = new Map<string, Order>()
  return {
    async save(deliveryId, order) {
      if (!byDelivery.has(deliveryId)) byDelivery.set(deliveryId, order)
    },
    all: () => [...byDelivery.values()],
  }
}

/** Creates a receiver that saves orders. When an order cannot be saved, the sender retries. */
export function createOrderReceiver(secret: string, orders: OrderStore): Receiver {
  const receiver = createReceiver({
    secret,
    onError: ({ status, code }) => console.warn(`webhook refused: ${status} ${code}`),
  })
  receiver.on('track', 'Order Completed', async ({ userId, properties }, delivery) => {
    await orders.save(delivery.id, { userId, orderId: properties?.order_id, total: properties?.total })
  })
  return receiver
}

/** An Express app that keeps the orders it is told of: what the tests beside it drive. */

import express, { type Express } from 'express'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/express'

/** A completed order. */
interface Order {
  readonly userId: string | null | undefined
  readonly orderId: unknown
  readonly total: unknown
}

/** Where orders are kept. In earnest this is a table with a unique column for the delivery. */
export interface OrderStore {
  /** Keeps the order of a delivery. Does nothing when it is there already: a sender that heard no answer sends again. */
  save(deliveryId: string, order: Order): Promise<void>
  all(): readonly Order[]
}

/** Makes an empty store. */
export function createOrderStore(): OrderStore {
  const byDelivery = new Map<string, Order>()
  return {
    async save(deliveryId, order) {
      if (!byDelivery.has(deliveryId)) byDelivery.set(deliveryId, order)
    },
    all: () => [...byDelivery.values()],
  }
}

/** Makes the app. It takes webhooks at `/webhooks`; when an order cannot be saved, the sender is told to come back. */
export function createOrdersApp(secret: string, orders: OrderStore): Express {
  const receiver = createReceiver({
    secret,
    onError: ({ status, code }) => console.warn(`webhook refused: ${status} ${code}`),
  })
  receiver.on('track', 'Order Completed', async ({ userId, properties }, delivery) => {
    await orders.save(delivery.id, { userId, orderId: properties?.order_id, total: properties?.total })
  })
  return express().post('/webhooks', serve(receiver))
}

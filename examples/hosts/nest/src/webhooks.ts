import { Injectable, type OnApplicationShutdown } from '@nestjs/common'
import { createReceiver } from 'hookline'
import { Orders } from './orders.js'

@Injectable()
export class Webhooks implements OnApplicationShutdown {
  readonly receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

  constructor(orders: Orders) {
    this.receiver.on('track', 'Order Completed', (message) => orders.complete(message.userId))
  }

  async onApplicationShutdown() {
    await this.receiver.close()
  }
}

import type { EventBridgeEvent } from 'aws-lambda'
import { createReceiver } from 'hookline'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', async (message) => console.log('track', message))

interface Webhook {
  headers: Record<string, string>
  /** In base64. */
  body: string
}

export async function handler({ detail }: EventBridgeEvent<'webhook', Webhook>): Promise<void> {
  const received = await receiver.receive(Buffer.from(detail.body, 'base64'), detail.headers)
  if (!received.ok && received.status >= 500) throw received.error
}

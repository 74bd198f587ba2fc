/** A receiver on node:http, without a framework. Start it: HOOKLINE_SECRET=… npm exec -- node examples/node.ts */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver
  .on('track', (message) => console.log('track', message))
  .on('identify', (message) => console.log('identify', message))
  .on('delete', (message) => console.log('delete', message))

const server = createServer(serve(receiver, { path: '/webhooks' })) // Answers every other path 404.

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`)
})

process.once('SIGTERM', async () => {
  await receiver.close() // Waits for handlers that run; the sender retries everything else.
  server.close()
})

/** A receiver in Koa 3, and in Koa 2 as well. Start it: HOOKLINE_SECRET=… npm exec -- node examples/koa.ts */

import type { AddressInfo } from 'node:net'
import { bodyParser } from '@koa/bodyparser'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/koa'
import Koa from 'koa'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver
  .on('track', (message) => console.log('track', message))
  .on('identify', (message) => console.log('identify', message))
  .on('delete', (message) => console.log('delete', message))

const app = new Koa()
app.use(serve(receiver, { path: '/webhooks' })) // Before the parser: the signature covers the bytes that it would consume.
app.use(bodyParser())
app.use((context) => {
  if (context.path === '/echo') context.body = context.request.body
})

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`)
})

process.once('SIGTERM', async () => {
  await receiver.close() // Waits for handlers that run; the sender retries everything else.
  server.close()
})

/** A receiver in Express 5, and in Express 4 as well. Start it: HOOKLINE_SECRET=… npm exec -- node examples/express.ts */

import type { AddressInfo } from 'node:net'
import express from 'express'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/express'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver
  .on('track', (message) => console.log('track', message))
  .on('identify', (message) => console.log('identify', message))
  .on('delete', (message) => console.log('delete', message))

const app = express()
app.post('/webhooks', serve(receiver)) // Before the parser: the signature covers the bytes that it would consume.
app.use(express.json())
app.post('/echo', (request, response) => void response.json(request.body))

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', (error) => {
  if (error !== undefined) throw error
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`)
})

process.once('SIGTERM', async () => {
  await receiver.close() // Waits for handlers that run; the sender retries everything else.
  server.close()
})

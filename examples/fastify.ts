/** A receiver in Fastify 5, and in Fastify 4 as well. Start it: HOOKLINE_SECRET=… npm exec -- node examples/fastify.ts */

import Fastify from 'fastify'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fastify'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver
  .on('track', (message) => console.log('track', message))
  .on('identify', (message) => console.log('identify', message))
  .on('delete', (message) => console.log('delete', message))

const app = Fastify()
app.register(serve(receiver), { path: '/webhooks' }) // Other routes keep Fastify's own body parser.
app.post('/echo', async (request) => request.body)

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })
console.log(`${address}/webhooks`)

process.once('SIGTERM', async () => {
  await receiver.close() // Waits for handlers that run; the sender retries everything else.
  await app.close()
})

/** A receiver as a Web Fetch handler, in Hono. Start it: HOOKLINE_SECRET=… npm exec -- node examples/fetch.ts */

import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { Hono } from 'hono'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver
  .on('track', (message) => console.log('track', message))
  .on('identify', (message) => console.log('identify', message))
  .on('delete', (message) => console.log('delete', message))

/** A function from Request to Response: the whole route in Next.js, a worker or Bun. */
export const POST = serve(receiver)

const app = new Hono()
app.post('/webhooks', (context) => POST(context.req.raw))

// Runtimes with Web Fetch take `app` as it is. On Node, use @hono/node-server in place of these lines.
const server = createServer(async (incoming, outgoing) => {
  const answer = await app.fetch(toRequest(incoming))
  outgoing.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`)
})

process.once('SIGTERM', async () => {
  await receiver.close() // Waits for handlers that run; the sender retries everything else.
  server.close()
})

function toRequest(incoming: IncomingMessage): Request {
  const { method = 'GET', url = '/', headersDistinct } = incoming
  const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  )
  const body = method === 'GET' || method === 'HEAD' ? {} : { body: Readable.toWeb(incoming), duplex: 'half' as const }
  return new Request(new URL(url, 'http://localhost'), { method, headers, ...body })
}

// Serves the receivers on a server of this runtime: that of node:http, or its own of Web Fetch. Ends by itself after `/close`.

import { createServer } from 'node:http'
import { serve } from 'hookline/node'
import { control, createApp, toFetch } from './app.mjs'

const app = createApp()
const closing = Promise.withResolvers()
const close = app.close
app.close = () => {
  const closed = close()
  closing.resolve(closed)
  return closed
}

const servers = {
  async node() {
    const listeners = new Map(Object.entries(app.endpoints).map(([path, endpoint]) => [path, serve(endpoint)]))
    const server = createServer((request, response) => {
      const listener = listeners.get(request.url)
      if (listener !== undefined) return listener(request, response)
      const answer = control(app, request.url)
      answer.text().then((text) => response.writeHead(answer.status).end(text))
    })
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    const stop = () => {
      server.close()
      server.closeAllConnections()
    }
    return { port: server.address().port, stop }
  },
  async fetch() {
    const fetch = toFetch(app)
    if ('Bun' in globalThis) {
      const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch })
      return { port: server.port, stop: () => server.stop(true) }
    }
    const server = Deno.serve({ port: 0, hostname: '127.0.0.1', onListen() {} }, fetch)
    return { port: server.addr.port, stop: () => server.shutdown() }
  },
}

const { port, stop } = await servers[process.argv[2]]()
console.log(JSON.stringify({ step: 'listening', outcome: port }))
await closing.promise
await stop()

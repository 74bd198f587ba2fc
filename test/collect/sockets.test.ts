/** What only sockets do: connections that are kept, cut off or never answered. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, expect, it } from 'vitest'
import { type ClientOptions, createClient, type RecordedCall } from '../../src/client.ts'
import { eventsOf, numbered, settle } from './dispatcher.ts'

const open: Server[] = []
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void

async function serve(handle: Handle = (_request, response) => response.end('{"success":true}'), port = 0) {
  const received: { readonly headers: IncomingMessage['headers']; readonly body: string; readonly url: string }[] = []
  const sockets = new Set<Socket>()
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => '')
    received.push({ headers: request.headers, body, url: request.url ?? '' })
    handle(request, response, body)
  })
  server.on('connection', (socket) => sockets.add(socket))
  server.listen(port, '127.0.0.1')
  open.push(server)
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  const endpoint = `http://127.0.0.1:${address.port}/v1/batch?token=1`
  return { server, received, sockets, endpoint, port: address.port }
}

function clientOf(endpoint: string, options: Partial<ClientOptions> = {}) {
  const failures: unknown[] = []
  const random = () => 0.02
  const onError = (error: Error, calls: readonly RecordedCall[]) => failures.push([error.message, eventsOf(calls)])
  return { client: createClient('write-key', { endpoint, random, onError, ...options }), failures }
}

function callsIn(bodies: readonly { readonly body: string }[]): readonly RecordedCall[] {
  return bodies.flatMap(({ body }) => JSON.parse(body).batch)
}

it('a connection is used again', async () => {
  const { received, sockets, endpoint } = await serve()
  const { client, failures } = clientOf(endpoint)
  for (let index = 0; index < 5; index++) {
    client.track(numbered(index))
    await client.flush()
    await settle() // The connection is free once undici has put the answer away.
  }
  expect(await client.close()).toEqual([])
  expect(sockets.size).toBe(1)
  expect(received).toHaveLength(5)
  expect(failures).toEqual([])
})

it('close lets go of the connections', async () => {
  const { server, sockets, endpoint } = await serve()
  server.keepAliveTimeout = 0 // The server would keep it for ever.
  const { client } = clientOf(endpoint)
  client.track(numbered(0))
  await client.close()
  const [socket] = sockets
  if (socket?.closed === false) await once(socket, 'close')
  server.close()
  await once(server, 'close')
})

it('a server that restarts in the middle of a batch gets the same bytes again', async () => {
  const first = await serve(() => {
    first.server.closeAllConnections()
    first.server.close()
  })
  const { client, failures } = clientOf(first.endpoint)
  for (let index = 0; index < 20; index++) client.track(numbered(index))
  await once(first.server, 'close')
  const second = await serve(undefined, first.port)
  await client.flush()
  expect(failures).toEqual([])
  expect(second.received.map(({ body }) => body)).toEqual(first.received.map(({ body }) => body))
  expect(eventsOf(callsIn(second.received))).toHaveLength(20)
  expect(Number(second.received[0]?.headers['x-retry-count'])).toBeGreaterThanOrEqual(1)
  await client.close()
})

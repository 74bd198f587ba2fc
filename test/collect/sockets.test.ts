/** What only sockets do: connections that are kept, cut off or never answered. */

import { expect, it } from 'vitest'
import { createClient, type RecordedCall } from '../../src/client.ts'
import { listen, serveBytes, serveKept } from '../send/set-up.ts'
import { hear } from '../support/channel.ts'
import { until } from '../support/until.ts'
import { eventsOf, numbered, settle } from './dispatcher.ts'

function clientOf(endpoint: string) {
  const failures: unknown[] = []
  const random = () => 0.02
  const onError = (error: Error, calls: readonly RecordedCall[]) => failures.push([error.message, eventsOf(calls)])
  return { client: createClient('write-key', { endpoint, random, onError }), failures }
}

it('a connection is used again', async () => {
  const endpoint = await listen()
  const { client, failures } = clientOf(endpoint.url)

  for (let index = 0; index < 5; index++) {
    client.track(numbered(index))
    await client.flush()
    await settle() // The connection is free once undici has put the answer away.
  }

  expect(await client.close()).toEqual([])
  expect([endpoint.connections, endpoint.requests.length, failures]).toEqual([1, 5, []])
})

it('close lets go of the connections', async () => {
  const { url, open } = await serveKept()
  const { client } = clientOf(url)
  client.track(numbered(0))
  await client.flush()
  expect(open.size).toBe(1)
  await client.close()
  await until(() => open.size === 0)
})

it('close lets go of a connection that is still being opened', async () => {
  const { url, sockets } = await serveBytes(() => {}) // It begins no TLS handshake.
  const { client } = clientOf(url.replace('http:', 'https:'))
  client.track(numbered(0))
  const flushed = client.flush()
  await until(() => sockets.length === 1)
  expect(await client.close({ timeoutMs: 0 })).toHaveLength(1)
  await until(() => sockets[0]?.closed === true)
  await flushed
})

it('a server that restarts in the middle of a batch gets the same bytes again', async () => {
  const first = await listen({ script: ['hang'] })
  const opened = hear<{ socket: { _handle: { hasRef(): boolean } } }>('net.client.socket')
  const { client, failures } = clientOf(first.url)
  for (let index = 0; index < 20; index++) client.track(numbered(index))
  await first.received(1)
  expect(opened.map(({ socket }) => socket._handle.hasRef())).toEqual([false]) // It keeps no process alive.
  await first.close()

  const second = await listen({ port: Number(new URL(first.url).port) })
  await client.flush()

  expect(failures).toEqual([])
  expect(second.requests.map(({ bytes }) => bytes)).toEqual(first.requests.map(({ bytes }) => bytes))
  expect(Number(second.requests[0]?.headers['x-retry-count'])).toBeGreaterThanOrEqual(1)
  await client.close()
})

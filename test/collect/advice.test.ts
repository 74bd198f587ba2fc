/** What the error of a batch advises helps: each test follows the advice, with the collector or a server in front of it. */

import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { serve } from '../../adapters/node.ts'
import { type ClientOptions, createClient } from '../../src/client.ts'
import { createCollector } from '../../src/collect/create-collector.ts'
import { startEndpoint } from '../../src/testing.ts'

async function listen(handle: RequestListener) {
  const server = createServer(handle)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function record(writeKey: string, options: ClientOptions) {
  const errors: string[] = []
  const onError = ({ message }: Error) => errors.push(message)
  const client = createClient(writeKey, { maxRetries: 1, random: () => 0, onError, ...options })
  for (let index = 0; index < 10; index++) client.track({ userId: 'user-1', event: `Event ${index}` })
  await client.close()
  return errors
}

test('with a collector: the write key, and the whole URL', async () => {
  const collector = createCollector({ sources: [{ name: 'shop', writeKey: 'right', destinations: [] }] })
  const origin = await listen(serve(collector, { path: '/analytics' }))
  const endpoint = `${origin}/analytics/v1/batch`
  expect(await record('wrong', { endpoint })).toEqual([expect.stringMatching(/status 401.* Check the write key\./)])
  expect(await record('right', { endpoint: `${origin}/analytics` })).toEqual([
    expect.stringMatching(/status 404.* Set `endpoint` to the whole URL that takes batches, .*\/v1\/batch'/),
  ])
  expect(await record('right', { endpoint })).toEqual([])
})

test('a service with a low limit: a lower `flushAt`', async () => {
  const endpoint = await listen(async (request, response) => {
    const { length } = await buffer(request)
    response.writeHead(length > 1_000 ? 413 : 200).end()
  })
  expect(await record('key', { endpoint })).toEqual([expect.stringMatching(/status 413.* Lower `flushAt`/)])
  expect(await record('key', { endpoint, flushAt: 2 })).toEqual([])
})

test('a redirect: the URL that it leads to', async () => {
  const endpoint = await listen((request, response) => {
    request.resume()
    const location = '/v1/batch'
    response.writeHead(request.url === location ? 200 : 308, { location }).end()
  })
  expect(await record('key', { endpoint })).toEqual([
    expect.stringMatching(/status 308.* Set `endpoint` to the URL that it redirects to/),
  ])
  expect(await record('key', { endpoint: `${endpoint}/v1/batch` })).toEqual([])
})

test('a private authority: `ca`', async () => {
  const service = await startEndpoint({ tls: 'private_ca' })
  onTestFinished(() => service.close())
  expect(await record('key', { endpoint: service.url })).toEqual([
    expect.stringMatching(
      /SELF_SIGNED_CERT_IN_CHAIN.* If the authority is private, pass the certificate of its root as `ca`\./,
    ),
  ])
  expect(service.bytesReceived).toBe(0)
  expect(await record('key', { endpoint: service.url, ca: service.ca })).toEqual([])
})

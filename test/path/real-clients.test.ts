/** Clients that were written for the real service, unchanged, all the way to the handlers of an Express receiver. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Analytics } from '@segment/analytics-node'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { serve } from '../../adapters/express.ts'
import { createCollector } from '../../src/collector/collector.ts'
import { createDestination } from '../../src/destination/destination.ts'
import type { Message } from '../../src/message/message.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'

const sharedSecret = 'secret'

/** Everything between a client and a handler, on one Express server. `before` sees what the client posts first. */
async function startPath(
  before: (request: IncomingMessage, response: ServerResponse, next: () => void) => void = (
    _request,
    _response,
    next,
  ) => next(),
) {
  const handled: { readonly message: Message; readonly verified: boolean }[] = []
  const receiver = createReceiver({ secret: sharedSecret })
  receiver.on('*', (message, { verified }) => void handled.push({ message, verified }))

  const app = express()
  const server: Server = createServer(app)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const destination = createDestination({ webhooks: [{ url: `${origin}/webhooks` }], sharedSecret })
  const collector = createCollector({ sources: [{ name: 'shop', writeKey: 'the-key', destinations: [destination] }] })
  app.post('/webhooks', serve(receiver))
  app.use('/analytics', before, serve(collector))
  onTestFinished(async () => {
    await destination.close()
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `${origin}/analytics`,
    handled,
    /** Everything that was accepted is delivered. */
    async settle() {
      await destination.close()
      return handled.map(({ message }) => message)
    },
  }
}

function openClient(url: string, options: object = {}) {
  const errors: unknown[] = []
  const client = new Analytics({
    writeKey: 'the-key',
    host: new URL(url).origin,
    path: `${new URL(url).pathname}/v1/batch`,
    flushInterval: 50,
    ...options,
  })
  client.on('error', (error) => errors.push(error))
  return { client, errors }
}

test('@segment/analytics-node: each call arrives, signed', async () => {
  const { url, handled, settle } = await startPath()
  const { client, errors } = openClient(url)
  const user = { userId: 'u1', context: { locale: 'de' } }
  client.identify({ ...user, traits: { plan: 'pro' } })
  client.track({ ...user, event: 'Order Completed', properties: { total: 39.95 } })
  client.page({ ...user, name: 'Pricing', category: 'Shop', properties: { url: 'https://shop.example/pricing' } })
  client.screen({ ...user, name: 'Basket', properties: { items: 2 } })
  client.group({ ...user, groupId: 'g1', traits: { name: 'Engines' } })
  client.alias({ userId: 'u1', previousId: 'a1' })
  client.track({ anonymousId: 'a2', event: 'Visited', timestamp: new Date('2026-01-15T09:30:00Z') })
  await client.closeAndFlush()
  const messages = await settle()

  const byType = (type: string) => messages.find((message) => message.type === type)
  expect(errors).toEqual([])
  expect(messages).toHaveLength(7)
  expect(handled.every(({ verified }) => verified)).toBe(true)
  expect(byType('identify')).toMatchObject({
    version: 1,
    userId: 'u1',
    traits: { plan: 'pro' },
    context: { locale: 'de' },
  })
  expect(byType('track')).toMatchObject({ event: 'Order Completed', properties: { total: 39.95 } })
  expect(byType('page')).toMatchObject({
    name: 'Pricing',
    category: 'Shop',
    properties: { url: 'https://shop.example/pricing' },
  })
  expect(byType('screen')).toMatchObject({ name: 'Basket', properties: { items: 2 } })
  expect(byType('group')).toMatchObject({ groupId: 'g1', traits: { name: 'Engines' } })
  expect(byType('alias')).toMatchObject({ 'Previous ID': 'a1', 'User ID': 'u1' })
  expect(messages.find((message) => message.type === 'track' && message.event === 'Visited')).toMatchObject({
    anonymousId: 'a2',
    timestamp: '2026-01-15T09:30:00.000Z',
  })
  for (const message of messages) {
    expect(message.context).toHaveProperty('library')
    expect(message.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(JSON.stringify(message)).not.toContain('the-key')
  }
})

test('@segment/analytics-node: batches of its own size arrive whole', async () => {
  const { url, settle } = await startPath()
  const { client, errors } = openClient(url, { flushAt: 20 })
  for (let index = 0; index < 205; index++) client.track({ userId: 'u', event: 'E', properties: { index } })
  await client.closeAndFlush()
  const messages = await settle()

  const indexes = messages.map((message) => message.type === 'track' && message.properties?.index)
  expect(errors).toEqual([])
  expect(new Set(indexes).size).toBe(205)
  expect(messages).toHaveLength(205)
})

test('@segment/analytics-node: comes back after 503 with Retry-After', async () => {
  let refused = 0
  const { url, settle } = await startPath((request, response, next) => {
    if (refused >= 2) return next()
    refused += 1
    request.resume()
    response.writeHead(503, { 'retry-after': '0' }).end()
  })
  const { client, errors } = openClient(url, { maxRetries: 5 })
  client.track({ userId: 'u', event: 'E' })
  await client.closeAndFlush({ timeout: 20_000 })

  expect(refused).toBe(2)
  expect(errors).toEqual([])
  expect(await settle()).toHaveLength(1)
}, 30_000)

test('@segment/analytics-node: a wrong write key is an error of the client, and nothing arrives', async () => {
  const { url, settle } = await startPath()
  const { client, errors } = openClient(url, { writeKey: 'another', maxRetries: 0 })
  client.track({ userId: 'u', event: 'E' })
  await client.closeAndFlush()

  expect(errors).toHaveLength(1)
  expect(await settle()).toEqual([])
})

/** Requests of other clients, as their sources make them. */
const OTHERS: readonly (readonly [
  name: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: object,
])[] = [
  [
    'a Go library, version 3',
    '/v1/batch',
    {
      authorization: `Basic ${btoa('the-key:')}`,
      'content-type': 'application/json',
      'user-agent': 'analytics-go (version: 3.0.0)',
    },
    {
      messageId: 'batch-1',
      sentAt: '2026-01-15T09:30:01.123456789Z',
      context: { library: { name: 'analytics-go', version: '3.0.0' } },
      batch: [{ type: 'track', messageId: 'm1', userId: 'u', event: 'E', timestamp: '2026-01-15T09:30:00.123456789Z' }],
    },
  ],
  [
    'a Python library',
    '/v1/batch',
    { authorization: `Basic ${btoa('the-key:')}`, 'content-type': 'application/json' },
    {
      sentAt: '2026-01-15T09:30:01.123456+00:00',
      batch: [
        {
          type: 'track',
          messageId: 'm1',
          userId: 'u',
          event: 'E',
          timestamp: '2026-01-15T09:30:00.123456+00:00',
          integrations: {},
          properties: {},
        },
      ],
    },
  ],
  [
    'a browser library',
    '/v1/t',
    { 'content-type': 'text/plain', origin: 'https://shop.example' },
    {
      type: 'track',
      messageId: 'ajs-next-1',
      writeKey: 'the-key',
      anonymousId: 'a',
      userId: null,
      event: 'E',
      timestamp: '2026-01-15T09:30:00.123Z',
      sentAt: '2026-01-15T09:30:01.000Z',
      properties: {},
      integrations: {},
      context: { page: { path: '/' } },
      _metadata: { bundled: [] },
    },
  ],
  [
    'a mobile library',
    '/v1/b',
    { 'content-type': 'application/json; charset=utf-8' },
    {
      writeKey: 'the-key',
      sentAt: '2026-01-15T09:30:01.000Z',
      batch: [{ type: 'track', messageId: 'm', anonymousId: 'a', event: 'E', timestamp: '2026-01-15T09:30:00.123Z' }],
    },
  ],
]

test.each(OTHERS)('what %s posts arrives', async (_name, path, headers, body) => {
  const { url, handled, settle } = await startPath()
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
  await settle()

  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ success: true, accepted: 1 })
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  expect(handled).toMatchObject([
    { verified: true, message: { type: 'track', event: 'E', timestamp: '2026-01-15T09:30:00.123Z' } },
  ])
})

/** From a recorded call to a handler: collector, destination and receiver, with real sockets between the last two. */

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { serve } from '../../adapters/node.ts'
import { createDestination } from '../../src/destination/destination.ts'
import { memoryQueue } from '../../src/queues/memory/index.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { setUpCollector, writeKey } from '../support/collect.ts'
import { until } from '../support/until.ts'

it('a call is collected once, delivered signed, and forgotten on request', async () => {
  const receiver = createReceiver({ secret: 'shared' })
  const handled: object[] = []
  receiver.on('*', (message) => handled.push(message))
  const server = http.createServer(serve(receiver, { path: '/webhooks' }))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const webhooks = [{ url: `http://127.0.0.1:${port}/webhooks` }]
  const destination = createDestination({ webhooks, sharedSecret: 'shared' })
  const { collector, post } = setUpCollector({
    sources: [{ name: 'shop', writeKey, kind: 'web', destinations: [destination] }],
  })

  const call = { type: 'page', userId: 'u', messageId: 'm', traits: { path: '/' }, writeKey }
  const missed = { ...call, messageId: 'n', integrations: { Webhooks: false } }
  await post('/v1/batch', { batch: [call, missed, { type: 'alias', userId: 'u', previousId: 'a' }] })
  await post('/v1/batch', { batch: [call] })
  await until(() => handled.length === 2)
  expect(await collector.delete('u')).toEqual([{ source: 'shop', queued: 1 }])
  await until(() => handled.length === 3)

  expect(handled).toContainEqual({
    version: 1,
    type: 'page',
    userId: 'u',
    messageId: 'm',
    properties: { path: '/' },
    timestamp: '2026-01-15T09:30:00.000Z',
    receivedAt: '2026-01-15T09:30:00.000Z',
    context: { ip: '192.0.2.1' },
  })
  expect(handled).toContainEqual(expect.objectContaining({ type: 'alias', 'Previous ID': 'a', 'User ID': 'u' }))
  expect(handled[2]).toEqual({ type: 'delete', userId: 'u', timestamp: '2026-01-15T09:30:00.000Z' })

  destination.disable()
  expect(await collector.delete('u')).toEqual([{ source: 'shop', queued: 0 }])
  await destination.close()
  expect((await post('/v1/batch', { batch: [call] })).json).toMatchObject({ status: 503, code: 'shutting_down' })
  await receiver.close()
  server.close()
})

it('a full queue turns the request away, and nothing of it is queued', async () => {
  const queue = memoryQueue({ name: 'small', maxJobs: 1 })
  const destination = createDestination({
    webhooks: [{ url: 'http://127.0.0.1:9/' }],
    queue,
    dispatcher: { dispatch: () => true },
  } as never)
  const { post } = setUpCollector({ sources: [{ name: 'shop', writeKey, destinations: [destination] }] })
  const page = { type: 'page', userId: 'u' }
  expect((await post('/v1/batch', { batch: [page, page] })).json).toMatchObject({ status: 503, code: 'queue_full' })
  expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0 })
  await destination.close({ graceMs: 0 })
})

/** What @segment/analytics-node does besides: large batches, retries, errors. */

import { expect, test } from 'vitest'
import type { Endpoint } from '../../src/host/endpoint.ts'
import { openAnalytics } from './clients.ts'
import { serveOnExpress } from './frameworks.ts'
import { startPath } from './start.ts'

test('batches of its own size arrive whole', async () => {
  const { url, settle } = await startPath(serveOnExpress)
  const { client, errors } = openAnalytics(url, { flushAt: 20 })
  for (let index = 0; index < 205; index++) client.track({ userId: 'u', event: 'E', properties: { index } })
  await client.closeAndFlush()
  const messages = await settle()

  const indexes = messages.map((message) => message.type === 'track' && message.properties?.index)
  expect(errors).toEqual([])
  expect(new Set(indexes).size).toBe(205)
  expect(messages).toHaveLength(205)
})

test('comes back after 503 with Retry-After', async () => {
  let refused = 0
  const refuse = (collector: Endpoint): Endpoint => ({
    ...collector,
    handle(request) {
      if (refused >= 2) return collector.handle(request)
      refused += 1
      return Promise.resolve({ status: 503, headers: { 'retry-after': '0' }, body: '' })
    },
  })
  const { url, settle } = await startPath(serveOnExpress, refuse)
  const { client, errors } = openAnalytics(url, { maxRetries: 5 })
  client.track({ userId: 'u', event: 'E' })
  await client.closeAndFlush({ timeout: 20_000 })

  expect(refused).toBe(2)
  expect(errors).toEqual([])
  expect(await settle()).toHaveLength(1)
}, 30_000)

test('a wrong write key is an error of the client, and nothing arrives', async () => {
  const { url, settle } = await startPath(serveOnExpress)
  const { client, errors } = openAnalytics(url, { writeKey: 'another', maxRetries: 0 })
  client.track({ userId: 'u', event: 'E' })
  await client.closeAndFlush()

  expect(errors).toHaveLength(1)
  expect(await settle()).toEqual([])
})

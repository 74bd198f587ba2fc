/** All seven types from each client to the handlers of a receiver, over real sockets: each client on a framework, and each framework. */

import { expect, test } from 'vitest'
import { CALLS, clients, openAnalytics, TIME } from './clients.ts'
import { frameworks, serveOnExpress } from './frameworks.ts'
import { startPath } from './start.ts'

const ARRIVED = {
  ...CALLS,
  alias: { 'User ID': 'user-1', 'Previous ID': 'anonymous-1', userId: 'user-1' },
} as const

const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const all = Object.entries(clients)
const pairs = all.flatMap(([client, given], index) =>
  // Each client, and each framework, in turn; ours on each of them.
  Object.entries(frameworks)
    .filter((_, at) => client === 'hookline' || at === index % 3)
    .map(([framework, serve]) => ({ client, framework, given, serve })),
)

test.each(pairs)('what $client sends arrives on $framework', async ({ given: { types, time = TIME, run }, serve }) => {
  const { url, collector, handled, settle } = await startPath(serve)

  await run(url)
  expect(await collector.delete('user-1')).toEqual([{ source: 'shop', queued: 1 }])
  const messages = await settle()

  expect(handled.every(({ verified }) => verified)).toBe(true)
  expect(messages.map(({ type }) => type).sort()).toEqual([...types, 'delete'].sort())
  for (const message of messages) {
    if (message.type === 'delete') {
      expect(message).toEqual({ type: 'delete', userId: 'user-1', timestamp: expect.stringMatching(UTC) })
    } else {
      expect(message).toMatchObject({ version: 1, timestamp: time, ...ARRIVED[message.type] })
      expect(message.context).toMatchObject({ ip: '127.0.0.1', library: { name: expect.any(String) } })
    }
    expect(JSON.stringify(message)).not.toContain('the-key')
  }
})

test('batches of the size that @segment/analytics-node makes of its own arrive whole', async () => {
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

/** Every row of the document "Go client library", driven through the whole path. docs/conformance.md lists the names. */

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Client } from '../../src/client/api.ts'
import { createClient } from '../../src/client/client.ts'
import { BATCH_LIMIT, CALL_LIMIT, FLUSH_AFTER_MS, FLUSH_AT } from '../../src/message/limits.ts'
import { manualClock } from '../../src/testing.ts'
import { layPath } from './path.ts'

/** Records one call and says what arrives. */
async function arrival(record: (client: Client) => void) {
  const path = layPath()
  record(path.client)
  const [message] = await path.arrive()
  return { ...path, message }
}

/** A call without a timestamp, posted straight to a collector whose clock is an hour ahead of every other. */
async function stampOf(type: string, call: object) {
  const { post, captured } = layPath({ collector: { clock: manualClock(Date.UTC(2026, 0, 15, 10, 30)) } })
  await post(type, call)
  return captured.messages[0]?.timestamp
}

const refuses = (record: (client: Client) => void, expected: RegExp) => {
  const { client } = layPath()
  expect(() => record(client)).toThrow(TypeError)
  expect(() => record(client)).toThrow(expected)
}

test('Client · What it does · 1 records calls and sends them to the collection service, which routes them to the destinations', async () => {
  const { message, requests } = await arrival((client) => client.track({ userId: 'u', event: 'E' }))
  expect(requests).toHaveLength(1)
  expect(message).toMatchObject({ type: 'track', userId: 'u', event: 'E' })
})

test('Client · What it does · 2 identify, track, page, group and alias', async () => {
  const { client, arrive } = layPath()
  client.identify({ userId: 'u' })
  client.track({ userId: 'u', event: 'E' })
  client.page({ userId: 'u' })
  client.group({ userId: 'u', groupId: 'g' })
  client.alias({ userId: 'u', previousId: 'p' })
  expect((await arrive()).map(({ type }) => type)).toEqual(['identify', 'track', 'page', 'group', 'alias'])
})

test('Client · What it does · 3 calls are queued in memory and flushed in batches, none makes a request of its own', async () => {
  const { client, clock, requests } = layPath()
  for (let i = 0; i < 60; i++) client.track({ userId: 'u', event: 'E' })
  expect(requests).toHaveLength(0)
  await clock.advance(0)
  expect(requests).toHaveLength(3)
})

test('Client · What it does · 4 a client is bound to the write key of one source', async () => {
  const { requests } = await arrival((client) => client.identify({ userId: 'u' }))
  expect(requests[0]?.headers.authorization).toBe(`Basic ${btoa('key:')}`)
  expect(() => createClient('', { endpoint: 'http://localhost/v1/batch' })).toThrow(/^`writeKey` must be/)
})

test('Client · What it does · 5 by default a batch is flushed every 20 messages, or 5 seconds after the last flush', async () => {
  const { client, clock, requests } = layPath()
  for (let i = 0; i < 21; i++) client.track({ userId: 'u', event: 'E' })
  await clock.advance(4_999)
  expect(requests).toHaveLength(1)
  await clock.advance(1)
  expect(requests).toHaveLength(2)
})

test('Client · What it does · 6 DEBUG=analytics turns debug logging on', () => {
  const program = `
    import { createClient } from '${new URL('../../src/client/client.ts', import.meta.url)}'
    const client = createClient('the-write-key', { endpoint: 'http://127.0.0.1:1/v1/batch', maxRetries: 0, onError: () => {} })
    client.track({ userId: 'u', event: 'E' })
    await client.close()`
  const run = (DEBUG: string) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: { ...process.env, DEBUG },
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    })
  expect(run('analytics').stderr).toContain('analytics')
  expect(run('analytics').stderr).not.toContain('the-write-key')
  expect(run('').stderr).not.toContain('analytics')
})

test('Client · What it does · 7 any call accepts a timestamp; without one the time is that of the server', async () => {
  const past = await arrival((client) =>
    client.track({ userId: 'u', event: 'E', timestamp: '2019-05-01T12:00:00+02:00' }),
  )
  expect(past.message?.timestamp).toBe('2019-05-01T10:00:00.000Z')
  const now = await arrival((client) => client.track({ userId: 'u', event: 'E' }))
  expect(now.message?.timestamp).toBe(new Date(now.clock.now()).toISOString())
  expect(await stampOf('track', { userId: 'u', event: 'E' })).toBe('2026-01-15T10:30:00.000Z')
})

test('Client · Settings · Size: messages queued before a flush; 1 flushes on every message', async () => {
  const { client, clock, requests } = layPath({ client: { size: 1 } })
  client.track({ userId: 'u', event: 'A' })
  client.track({ userId: 'u', event: 'B' })
  await clock.advance(0)
  expect(requests).toHaveLength(2)
})

test('Client · Settings · Endpoint: the URL that batches are posted to', async () => {
  const { client, arrive, requests } = layPath({ client: { endpoint: 'https://collector.example/v1/batch?tenant=7' } })
  client.track({ userId: 'u', event: 'E' })
  await arrive()
  expect(requests[0]?.path).toBe('/v1/batch?tenant=7')
})

test('Client · Settings · FlushAt: messages per flush, default 20; 1 turns batching off', async () => {
  expect(FLUSH_AT).toBe(20)
  const { client, clock, requests } = layPath({ client: { flushAt: 3 } })
  for (let i = 0; i < 6; i++) client.track({ userId: 'u', event: 'E' })
  await clock.advance(0)
  expect(requests.map(({ body }) => JSON.parse(String(body)).batch.length)).toEqual([3, 3])
})

test('Client · Settings · FlushAfter: time since the last flush that triggers one, default 5 seconds', async () => {
  expect(FLUSH_AFTER_MS).toBe(5_000)
  const { client, clock, requests } = layPath({ client: { flushAfterMs: 100 } })
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(99)
  expect(requests).toHaveLength(0)
  await clock.advance(1)
  expect(requests).toHaveLength(1)
})

test('Client · Messages · Identify · UserId: string, or AnonymousId in its place', async () => {
  expect((await arrival((client) => client.identify({ userId: 'u' }))).message).toMatchObject({
    type: 'identify',
    userId: 'u',
  })
  expect((await arrival((client) => client.identify({ anonymousId: 'a' }))).message).toMatchObject({ anonymousId: 'a' })
  refuses((client) => client.identify({} as never), /userId/)
})

test('Client · Messages · Identify · Traits: map, optional', async () => {
  const traits = { plan: 'pro', logins: 5 }
  expect((await arrival((client) => client.identify({ userId: 'u', traits }))).message).toMatchObject({ traits })
  refuses((client) => client.identify({ userId: 'u', traits: 'pro' as never }), /traits/)
})

test('Client · Messages · Track · Event: string, required', async () => {
  expect((await arrival((client) => client.track({ userId: 'u', event: 'Order Completed' }))).message).toMatchObject({
    type: 'track',
    event: 'Order Completed',
  })
  refuses((client) => client.track({ userId: 'u' } as never), /event/)
  refuses((client) => client.track({ userId: 'u', event: '' }), /event/)
})

test('Client · Messages · Track · UserId: string, or AnonymousId in its place', async () => {
  expect((await arrival((client) => client.track({ anonymousId: 'a', event: 'E' }))).message).toMatchObject({
    anonymousId: 'a',
  })
  refuses((client) => client.track({ event: 'E' } as never), /userId/)
})

test('Client · Messages · Track · Properties: map, optional', async () => {
  const properties = { total: 39.95, 'Coupon Code': 'X' }
  expect((await arrival((client) => client.track({ userId: 'u', event: 'E', properties }))).message).toMatchObject({
    properties,
  })
  refuses((client) => client.track({ userId: 'u', event: 'E', properties: [] as never }), /properties/)
})

test('Client · Messages · Page · UserId: string, required unless AnonymousId is there', async () => {
  expect((await arrival((client) => client.page({ userId: 'u' }))).message).toMatchObject({ type: 'page', userId: 'u' })
  refuses((client) => client.page({} as never), /userId/)
})

test('Client · Messages · Page · Category: string, optional', async () => {
  expect((await arrival((client) => client.page({ userId: 'u', category: 'Docs' }))).message).toMatchObject({
    category: 'Docs',
  })
  refuses((client) => client.page({ userId: 'u', category: 1 as never }), /category/)
})

test('Client · Messages · Page · Name: string, optional', async () => {
  expect((await arrival((client) => client.page({ userId: 'u', name: 'Pricing' }))).message).toMatchObject({
    name: 'Pricing',
  })
  refuses((client) => client.page({ userId: 'u', name: 1 as never }), /name/)
})

test('Client · Messages · Page · Traits: url, title, referrer, path and others; they arrive as properties', async () => {
  const traits = { url: 'https://a/', title: 'A', referrer: 'https://b/', path: '/', other: 1 }
  const { message } = await arrival((client) => client.page({ userId: 'u', traits }))
  expect(message).toMatchObject({ properties: traits })
  expect(message).not.toHaveProperty('traits')
})

test('Client · Messages · Page · Timestamp: ISO 8601, defaults to the time of the server', async () => {
  const { message } = await arrival((client) => client.page({ userId: 'u', timestamp: '2020-01-01T00:00:00Z' }))
  expect(message?.timestamp).toBe('2020-01-01T00:00:00.000Z')
  const { message: later, clock } = await arrival((client) => client.page({ userId: 'u' }))
  expect(later?.timestamp).toBe(new Date(clock.now()).toISOString())
  expect(await stampOf('page', { userId: 'u' })).toBe('2026-01-15T10:30:00.000Z')
  refuses((client) => client.page({ userId: 'u', timestamp: 'yesterday' }), /timestamp/)
})

test('Client · Messages · Page · Context: map of extra context', async () => {
  const context = { locale: 'de', campaign: { name: 'spring' } }
  expect((await arrival((client) => client.page({ userId: 'u', context }))).message).toMatchObject({ context })
  refuses((client) => client.page({ userId: 'u', context: 'de' as never }), /context/)
})

test('Client · Messages · Page · AnonymousId: string, while the user is unknown', async () => {
  expect((await arrival((client) => client.page({ anonymousId: 'a' }))).message).toMatchObject({
    type: 'page',
    anonymousId: 'a',
  })
})

test('Client · Messages · Group · UserId: string, or AnonymousId in its place', async () => {
  expect((await arrival((client) => client.group({ anonymousId: 'a', groupId: 'g' }))).message).toMatchObject({
    anonymousId: 'a',
  })
  refuses((client) => client.group({ groupId: 'g' } as never), /userId/)
})

test('Client · Messages · Group · GroupId: string, required', async () => {
  expect((await arrival((client) => client.group({ userId: 'u', groupId: 'g' }))).message).toMatchObject({
    type: 'group',
    groupId: 'g',
  })
  refuses((client) => client.group({ userId: 'u' } as never), /groupId/)
})

test('Client · Messages · Group · Traits: map, optional', async () => {
  const traits = { name: 'Engines', 'Employee Count': 12 }
  expect((await arrival((client) => client.group({ userId: 'u', groupId: 'g', traits }))).message).toMatchObject({
    traits,
  })
})

test('Client · Messages · Alias · UserId: string, required', async () => {
  expect((await arrival((client) => client.alias({ userId: 'new', previousId: 'old' }))).message).toMatchObject({
    'User ID': 'new',
  })
  refuses((client) => client.alias({ previousId: 'old' } as never), /userId/)
})

test('Client · Messages · Alias · PreviousId: string, required', async () => {
  expect((await arrival((client) => client.alias({ userId: 'new', previousId: 'old' }))).message).toMatchObject({
    'Previous ID': 'old',
  })
  refuses((client) => client.alias({ userId: 'new' } as never), /previousId/)
})

test('Client · Messages · all five call types accept Integrations', async () => {
  const integrations = { All: false }
  const { client, arrive, requests } = layPath()
  client.identify({ userId: 'u', integrations })
  client.track({ userId: 'u', event: 'E', integrations })
  client.page({ userId: 'u', integrations })
  client.group({ userId: 'u', groupId: 'g', integrations })
  client.alias({ userId: 'u', previousId: 'p', integrations })
  expect(await arrive()).toEqual([])
  const { batch } = JSON.parse(String(requests[0]?.body))
  expect(batch.map((call: { integrations: unknown }) => call.integrations)).toEqual(Array(5).fill(integrations))
})

const OPERATIONS = {
  identify: (client: Client) => client.identify({ userId: 'u' }),
  track: (client: Client) => client.track({ userId: 'u', event: 'E' }),
  page: (client: Client) => client.page({ userId: 'u' }),
  group: (client: Client) => client.group({ userId: 'u', groupId: 'g' }),
  alias: (client: Client) => client.alias({ userId: 'u', previousId: 'p' }),
}

function queues(type: keyof typeof OPERATIONS) {
  return async () => {
    const { client, requests, arrive } = layPath()
    expect(OPERATIONS[type](client)).toBeUndefined()
    expect(requests).toHaveLength(0)
    expect(await arrive()).toMatchObject([{ type }])
  }
}

test('Client · Operations · Identify queues the message', queues('identify'))
test('Client · Operations · Track queues the message', queues('track'))
test('Client · Operations · Page queues the message', queues('page'))
test('Client · Operations · Group queues the message', queues('group'))
test('Client · Operations · Alias queues the message', queues('alias'))

async function arrives(integrations?: Readonly<Record<string, unknown>>): Promise<boolean> {
  const { message } = await arrival((client) =>
    client.track({ userId: 'u', event: 'E', ...(integrations && { integrations }) }),
  )
  return message !== undefined
}

test('Client · Selecting destinations · 1 a call may carry a map from destination name to a boolean', async () => {
  expect([await arrives({ Webhooks: true }), await arrives({ Webhooks: false })]).toEqual([true, false])
})

test('Client · Selecting destinations · 2 names are case sensitive and equal the documented name', async () => {
  expect([await arrives({ webhooks: false }), await arrives({ WEBHOOKS: false })]).toEqual([true, true])
})

test('Client · Selecting destinations · 3 by default all destinations are enabled', async () => {
  expect([await arrives(), await arrives({}), await arrives({ Other: true })]).toEqual([true, true, true])
})

test('Client · Selecting destinations · 4 All set to false disables every destination unless another key sets it to true', async () => {
  expect([await arrives({ All: false }), await arrives({ All: false, Webhooks: true })]).toEqual([false, true])
})

test('Client · Selecting destinations · 5 a key set to true enables that destination', async () => {
  expect([await arrives({ All: false, Webhooks: true }), await arrives({ All: false, Other: true })]).toEqual([
    true,
    false,
  ])
})

test('Client · Submission · batch requests go to the address in Endpoint', async () => {
  const { requests } = await arrival((client) => client.track({ userId: 'u', event: 'E' }))
  expect(requests).toMatchObject([{ path: '/v1/batch', answer: { status: 200 } }])
  expect(JSON.parse(String(requests[0]?.body))).toMatchObject({ batch: [{ type: 'track' }] })
})

test('Client · Authentication · the client is created with the write key of the source', async () => {
  const { client, arrive, requests } = layPath()
  client.track({ userId: 'u', event: 'E' })
  await arrive()
  expect(requests[0]?.answer.status).toBe(200)
  expect(requests[0]?.headers.authorization).toBe(`Basic ${btoa('key:')}`)
})

test('Client · Errors · Size of 1 flushes on every message during development', async () => {
  const { client, clock, captured } = layPath({ client: { size: 1 } })
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(0)
  await clock.advance(0)
  expect(captured.messages).toHaveLength(1)
})

test('Client · Limits · Maximum size of one batch request: 500 KB', async () => {
  expect(BATCH_LIMIT).toBe(500 * 1024)
  const { client, arrive, requests } = layPath()
  const properties = { text: 'x'.repeat(31 * 1024) }
  for (let i = 0; i < 40; i++) client.track({ userId: 'u', event: 'E', properties })
  expect(await arrive()).toHaveLength(40)
  for (const { body } of requests) expect(body.length).toBeLessThanOrEqual(500_000)
})

test('Client · Limits · Maximum size of one call: 32 KB', async () => {
  expect(CALL_LIMIT).toBe(32 * 1024)
  const { client, arrive } = layPath()
  client.track({ userId: 'u', event: 'E', properties: { text: 'x'.repeat(32_000) } })
  expect(() => client.track({ userId: 'u', event: 'E', properties: { text: 'x'.repeat(32_768) } })).toThrow(/32/)
  expect(await arrive()).toHaveLength(1)
})

test('Client · Limits · Default flush threshold: 20 messages', async () => {
  const { client, clock, requests } = layPath()
  for (let i = 0; i < 19; i++) client.track({ userId: 'u', event: 'E' })
  await clock.advance(0)
  expect(requests).toHaveLength(0)
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(0)
  expect(requests).toHaveLength(1)
})

test('Client · Limits · Default flush interval: 5 seconds', async () => {
  const { client, clock, requests } = layPath()
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(4_999)
  expect(requests).toHaveLength(0)
  await clock.advance(1)
  expect(requests).toHaveLength(1)
})

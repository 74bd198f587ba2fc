/** Every row of the document "Go client library", driven through the whole path. docs/conformance.md lists the names. */

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { ClientOptions } from '../../src/collect/client-options.ts'
import type { Client } from '../../src/collect/client-types.ts'
import type { CollectorDestination } from '../../src/collect/collector-types.ts'
import { createClient } from '../../src/collect/create-client.ts'
import { BATCH_LIMIT, CALL_LIMIT, FLUSH_AFTER_MS, FLUSH_AT } from '../../src/protocol/limits.ts'
import { manualClock } from '../../src/testing.ts'
import { CALLS, layPath, type PathOptions } from './path.ts'

const FIVE = ['identify', 'track', 'page', 'group', 'alias'] as const

function record(client: Client, type: (typeof FIVE)[number], fields: object = {}): void {
  client[type]({ ...CALLS[type], ...fields } as never)
}

/** A call that is this many bytes of JSON, some of them in characters of two. */
function callOf(bytes: number, messageId = 'm') {
  const call = (text: string) => ({ ...CALLS.track, messageId, context: { library: {} }, properties: { text } })
  const empty = { ...call('ää'), type: 'track', timestamp: '2026-01-15T09:30:00.000Z' }
  return call(`ää${'x'.repeat(bytes - Buffer.byteLength(JSON.stringify(empty)))}`)
}

async function arrival(record: (client: Client) => void, options: PathOptions = {}) {
  const path = layPath(options)
  record(path.client)
  const [message] = await path.arrive()
  return { ...path, message }
}

const refuses = (record: (client: Client) => void, expected: RegExp) => {
  const { client } = layPath()
  expect(() => record(client)).toThrow(TypeError)
  expect(() => record(client)).toThrow(expected)
}

test('Client · What it does · 1 records calls and sends them to the collection service, which routes them to the destinations', async () => {
  const submitted: unknown[] = []
  const other: CollectorDestination = {
    async submit(submissions) {
      submitted.push(...submissions.map(({ message }) => message))
      return submissions.map(() => ({ queued: true, id: 'stored' }))
    },
  }
  const { client, destination, requests, arrive, captured } = layPath({ others: [other] })
  client.track({ userId: 'u', event: 'E' })
  await arrive()
  destination.disable()
  client.identify({ userId: 'u' })
  await arrive()
  expect(requests.map(({ answer }) => answer.status)).toEqual([200, 200])
  expect(captured.messages).toMatchObject([{ type: 'track', userId: 'u', event: 'E' }])
  expect(submitted).toMatchObject([{ type: 'track' }, { type: 'identify' }])
})

test('Client · What it does · 2 identify, track, page, group and alias', async () => {
  const { client, arrive } = layPath()
  for (const type of FIVE) record(client, type)
  expect((await arrive()).map(({ type }) => type)).toEqual(FIVE)
})

test('Client · What it does · 3 calls are queued in memory and flushed in batches, none makes a request of its own', async () => {
  const { client, clock, requests } = layPath()
  for (let i = 0; i < 60; i++) {
    expect(requests).toHaveLength(Math.floor(i / 20))
    client.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
  }
  expect(requests).toHaveLength(3)
})

test('Client · What it does · 4 a client is bound to the write key of one source', async () => {
  const { requests, message } = await arrival((client) => client.identify({ userId: 'u' }))
  expect(requests[0]?.headers.authorization).toBe(`Basic ${btoa('key:')}`)
  expect(message).toMatchObject({ type: 'identify' })
  const other = await arrival((client) => client.identify({ userId: 'u' }), { writeKey: 'other key' })
  expect(other.requests).toMatchObject([{ answer: { status: 200 } }])
  expect(other.message).toBeUndefined()
  expect(() => createClient('', { endpoint: 'http://localhost/v1/batch' })).toThrow(/^`writeKey` must be/)
})

test('Client · What it does · 5 by default a batch is flushed every 20 messages, or 5 seconds after the last flush', async () => {
  const { client, clock, requests } = layPath()
  for (let i = 0; i < 21; i++) client.track({ userId: 'u', event: 'E' })
  await clock.advance(4_999)
  expect(requests).toHaveLength(1)
  await clock.advance(1)
  expect(requests).toHaveLength(2)
  await clock.advance(3_000)
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(1_999)
  expect(requests).toHaveLength(2)
  await clock.advance(1)
  expect(requests).toHaveLength(3)
})

test('Client · What it does · 6 DEBUG=analytics turns debug logging on', { timeout: 30_000 }, async () => {
  const program = `
    import { createClient } from '${new URL('../../src/collect/create-client.ts', import.meta.url)}'
    const client = createClient('the-write-key', { endpoint: 'http://127.0.0.1:1/v1/batch', maxRetries: 0, onError: () => {} })
    client.track({ userId: 'u', event: 'E' })
    await client.close()`
  const logOf = async (DEBUG: string) => {
    const options = { env: { ...process.env, DEBUG }, cwd: fileURLToPath(new URL('../..', import.meta.url)) }
    const args = ['--input-type=module', '-e', program]
    return (await promisify(execFile)(process.execPath, args, options)).stderr
  }
  const [on, off] = await Promise.all([logOf('analytics'), logOf('')])
  expect(on).toContain('analytics')
  for (const key of ['the-write-key', btoa('the-write-key:')]) expect(on).not.toContain(key)
  expect(off).not.toContain('analytics')
})

test('Client · What it does · 7 any call accepts a timestamp; only a destination for historical data gets it; else the time is that of the server', async () => {
  const timestamp = '2019-05-01T12:00:00+02:00'
  for (const type of FIVE) {
    const past = await arrival((client) => record(client, type, { timestamp }))
    expect(past.message).toMatchObject({ type, timestamp: '2019-05-01T10:00:00.000Z' })
    const now = await arrival((client) => record(client, type))
    expect(now.message?.timestamp).toBe(new Date(now.clock.now()).toISOString())

    const destination = { historicalAfterMs: 24 * 3_600_000 }
    const refused = await arrival((client) => record(client, type, { timestamp }), { destination })
    expect(refused.message).toBeUndefined()
    expect((await refused.destination.health()).skipped.historical).toBe(1)
    const recent = new Date(now.clock.now() - 3_600_000)
    const taken = await arrival((client) => record(client, type, { timestamp: recent }), { destination })
    expect(taken.message?.timestamp).toBe(recent.toISOString())

    // A call without a timestamp, posted straight to a collector whose clock is an hour ahead of every other.
    const { post, captured } = layPath({ collector: { clock: manualClock(Date.UTC(2026, 0, 15, 10, 30)) } })
    await post(type, CALLS[type])
    expect(captured.messages[0]?.timestamp).toBe('2026-01-15T10:30:00.000Z')
  }
})

test('Client · Settings · Size: messages queued before a flush; 1 flushes on every message', async () => {
  const { client, clock, requests } = layPath({ client: { size: 1 } })
  client.track({ userId: 'u', event: 'A' })
  client.track({ userId: 'u', event: 'B' })
  await clock.advance(0)
  expect(requests).toHaveLength(2)
})

test('Client · Settings · Endpoint: the URL that batches are posted to', async () => {
  const { client, arrive, requests } = layPath({ client: { endpoint: 'https://other.example/v1/batch?tenant=7' } })
  client.track({ userId: 'u', event: 'E' })
  await arrive()
  expect(requests[0]).toMatchObject({ origin: 'https://other.example', path: '/v1/batch?tenant=7' })
})

test('Client · Settings · FlushAt: messages per flush, default 20; 1 turns batching off', async () => {
  expect(FLUSH_AT).toBe(20)
  const sizesOf = async (calls: number, options: Partial<ClientOptions>) => {
    const { client, clock, requests } = layPath({ client: options })
    for (let i = 0; i < calls; i++) record(client, 'track')
    await clock.advance(0)
    return requests.map(({ body }) => JSON.parse(String(body)).batch.length)
  }
  expect(await sizesOf(6, { flushAt: 3 })).toEqual([3, 3])
  expect(await sizesOf(40, {})).toEqual([20, 20])
  expect(await sizesOf(3, { flushAt: 1 })).toEqual([1, 1, 1])
})

test('Client · Settings · FlushAfter: time since the last flush that triggers one, default 5 seconds', async () => {
  expect(FLUSH_AFTER_MS).toBe(5_000)
  const { client, clock, requests } = layPath({ client: { flushAfterMs: 100 } })
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(99)
  expect(requests).toHaveLength(0)
  await clock.advance(1)
  expect(requests).toHaveLength(1)
  await clock.advance(60)
  client.track({ userId: 'u', event: 'E' })
  await clock.advance(40)
  expect(requests).toHaveLength(2)
})

test('Client · Messages · Identify · UserId: string, or AnonymousId in its place', async () => {
  expect((await arrival((client) => client.identify({ userId: 'u' }))).message).toMatchObject({
    type: 'identify',
    userId: 'u',
  })
  expect((await arrival((client) => client.identify({ anonymousId: 'a' }))).message).toMatchObject({ anonymousId: 'a' })
  refuses((client) => client.identify({} as never), /userId/)
  refuses((client) => client.identify({ userId: 7 as never }), /userId/)
})

test('Client · Messages · Identify · Traits: map, optional', async () => {
  const traits = { plan: 'pro', logins: 5 }
  expect((await arrival((client) => client.identify({ userId: 'u', traits }))).message).toMatchObject({ traits })
  for (const wrong of ['pro', ['pro']])
    refuses((client) => client.identify({ userId: 'u', traits: wrong as never }), /traits/)
})

test('Client · Messages · Track · Event: string, required', async () => {
  expect((await arrival((client) => client.track({ userId: 'u', event: 'Order Completed' }))).message).toMatchObject({
    type: 'track',
    event: 'Order Completed',
  })
  refuses((client) => client.track({ userId: 'u' } as never), /event/)
  for (const event of ['', 7]) refuses((client) => client.track({ userId: 'u', event: event as never }), /event/)
})

test('Client · Messages · Track · UserId: string, or AnonymousId in its place', async () => {
  expect((await arrival((client) => client.track({ anonymousId: 'a', event: 'E' }))).message).toMatchObject({
    anonymousId: 'a',
  })
  refuses((client) => client.track({ event: 'E' } as never), /userId/)
  refuses((client) => client.track({ event: 'E', userId: 7 as never }), /userId/)
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
  refuses((client) => client.page({ userId: 7 as never }), /userId/)
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
  const { post, captured } = layPath()
  await post('page', { userId: 'u', traits })
  expect(captured.messages).toMatchObject([{ properties: traits }])
})

test('Client · Messages · Page · Timestamp: ISO 8601, defaults to the time of the server', async () => {
  const { message } = await arrival((client) => client.page({ userId: 'u', timestamp: '2020-01-01T00:00:00Z' }))
  expect(message?.timestamp).toBe('2020-01-01T00:00:00.000Z')
  const { message: later, clock } = await arrival((client) => client.page({ userId: 'u' }))
  expect(later?.timestamp).toBe(new Date(clock.now()).toISOString())
  refuses((client) => client.page({ userId: 'u', timestamp: 'yesterday' }), /timestamp/)
})

test('Client · Messages · Page · Context: map of extra context', async () => {
  const context = { locale: 'de', campaign: { name: 'spring' } }
  expect((await arrival((client) => client.page({ userId: 'u', context }))).message).toMatchObject({ context })
  for (const wrong of ['de', ['de']])
    refuses((client) => client.page({ userId: 'u', context: wrong as never }), /context/)
})

test('Client · Messages · Page · AnonymousId: string, while the user is unknown', async () => {
  expect((await arrival((client) => client.page({ anonymousId: 'a' }))).message).toMatchObject({
    type: 'page',
    anonymousId: 'a',
  })
  refuses((client) => client.page({ anonymousId: 7 as never }), /anonymousId/)
})

test('Client · Messages · Group · UserId: string, or AnonymousId in its place', async () => {
  expect((await arrival((client) => client.group({ anonymousId: 'a', groupId: 'g' }))).message).toMatchObject({
    anonymousId: 'a',
  })
  refuses((client) => client.group({ groupId: 'g' } as never), /userId/)
  refuses((client) => client.group({ groupId: 'g', userId: 7 as never }), /userId/)
})

test('Client · Messages · Group · GroupId: string, required', async () => {
  expect((await arrival((client) => client.group({ userId: 'u', groupId: 'g' }))).message).toMatchObject({
    type: 'group',
    groupId: 'g',
  })
  refuses((client) => client.group({ userId: 'u' } as never), /groupId/)
  refuses((client) => client.group({ userId: 'u', groupId: 7 as never }), /groupId/)
})

test('Client · Messages · Group · Traits: map, optional', async () => {
  const traits = { name: 'Engines', 'Employee Count': 12 }
  expect((await arrival((client) => client.group({ userId: 'u', groupId: 'g', traits }))).message).toMatchObject({
    traits,
  })
  for (const wrong of ['large', ['large']])
    refuses((client) => client.group({ userId: 'u', groupId: 'g', traits: wrong as never }), /traits/)
})

test('Client · Messages · Alias · UserId: string, required', async () => {
  const { captured } = await arrival((client) => client.alias({ userId: 'new', previousId: 'old' }))
  expect(JSON.parse(String(captured.requests[0]?.bytes))).toMatchObject({ 'User ID': 'new' })
  refuses((client) => client.alias({ previousId: 'old' } as never), /userId/)
  refuses((client) => client.alias({ previousId: 'old', userId: 7 as never }), /userId/)
})

test('Client · Messages · Alias · PreviousId: string, required', async () => {
  const { captured } = await arrival((client) => client.alias({ userId: 'new', previousId: 'old' }))
  expect(JSON.parse(String(captured.requests[0]?.bytes))).toMatchObject({ 'Previous ID': 'old' })
  refuses((client) => client.alias({ userId: 'new' } as never), /previousId/)
  refuses((client) => client.alias({ userId: 'new', previousId: 7 as never }), /previousId/)
})

test('Client · Messages · all five call types accept Integrations', async () => {
  for (const type of FIVE) {
    const integrations = { All: false, Other: true }
    const { message, requests } = await arrival((client) => record(client, type, { integrations }))
    expect(JSON.parse(String(requests[0]?.body)).batch).toMatchObject([{ type, integrations }])
    expect(message).toBeUndefined()
    const chosen = await arrival((client) => record(client, type, { integrations: { All: false, Webhooks: true } }))
    expect(chosen.message).toMatchObject({ type })
    for (const wrong of ['Webhooks', ['Webhooks']])
      refuses((client) => record(client, type, { integrations: wrong }), /integrations/)
  }
})

function queues(type: (typeof FIVE)[number]) {
  return async () => {
    const { client, requests, arrive } = layPath()
    expect(client[type](CALLS[type] as never)).toBeUndefined()
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
  expect([await arrives({ All: false, webhooks: true }), await arrives({ all: false })]).toEqual([false, true])
})

test('Client · Selecting destinations · 3 by default all destinations are enabled', async () => {
  expect([await arrives(), await arrives({}), await arrives({ Other: true })]).toEqual([true, true, true])
})

test('Client · Selecting destinations · 4 All set to false disables every destination unless another key sets it to true', async () => {
  expect([await arrives({ All: false }), await arrives({ All: false, Webhooks: true })]).toEqual([false, true])
  expect([await arrives({ All: true }), await arrives({ All: false, Webhooks: false })]).toEqual([true, false])
})

test('Client · Selecting destinations · 5 a key set to true enables that destination', async () => {
  expect([await arrives({ All: false, Webhooks: true }), await arrives({ All: false, Other: true })]).toEqual([
    true,
    false,
  ])
})

test('Client · Submission · batch requests go to the address in Endpoint', async () => {
  const { requests } = await arrival((client) => client.track({ userId: 'u', event: 'E' }))
  expect(requests).toMatchObject([
    { method: 'POST', origin: 'https://collector.example', path: '/v1/batch', answer: { status: 200 } },
  ])
  expect(JSON.parse(String(requests[0]?.body))).toMatchObject({ batch: [{ type: 'track' }] })
})

test('Client · Authentication · the client is created with the write key of the source', async () => {
  const { requests } = await arrival((client) => client.track({ userId: 'u', event: 'E' }))
  expect(requests[0]?.answer.status).toBe(200)
  expect(requests[0]?.headers.authorization).toBe(`Basic ${btoa('key:')}`)
  const errors: { readonly status: number | undefined }[] = []
  const onError: ClientOptions['onError'] = (error) => errors.push(error)
  const wrong = await arrival((client) => record(client, 'track'), { writeKey: 'wrong', client: { onError } })
  expect(wrong.requests[0]?.answer.status).toBe(401)
  expect(wrong.message).toBeUndefined()
  expect(errors).toMatchObject([{ status: 401 }])
})

test('Client · Errors · Size of 1 flushes on every message during development', async () => {
  const { client, clock, captured } = layPath({ client: { size: 1 } })
  for (const count of [1, 2]) {
    client.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
    await clock.advance(0)
    expect(captured.messages).toHaveLength(count)
  }
})

test('Client · Limits · Maximum size of one batch request: 500 KB', async () => {
  expect(BATCH_LIMIT).toBe(500 * 1024)
  // 500 KB in either meaning of KB: the client sends 500 000 bytes at most, and the collector accepts 512 000.
  const sizesOf = async (more: number) => {
    const { client, arrive, requests } = layPath()
    const around = JSON.stringify({ batch: [], sentAt: '2026-01-15T09:30:00.000Z' }).length
    for (let i = 0; i < 15; i++) client.track(callOf(32_000, `m${i}`))
    client.track(callOf(500_000 - around - 15 * 32_001 + more))
    expect(await arrive()).toHaveLength(16)
    return requests.map(({ body }) => body.length)
  }
  expect(await sizesOf(0)).toEqual([500_000])
  expect(Math.max(...(await sizesOf(1)))).toBeLessThan(500_000)

  const { post } = layPath()
  const statusOf = async (bytes: number) => {
    const empty = JSON.stringify({ batch: [], note: '', writeKey: 'key' }).length
    return (await post('batch', { batch: [], note: 'x'.repeat(bytes - empty) }))?.status
  }
  expect([await statusOf(500 * 1024), await statusOf(500 * 1024 + 1)]).toEqual([200, 413])
})

test('Client · Limits · Maximum size of one call: 32 KB', async () => {
  expect(CALL_LIMIT).toBe(32 * 1024)
  const { client, post, arrive } = layPath()
  client.track(callOf(32 * 1024))
  expect(await arrive()).toHaveLength(1)
  expect(() => client.track(callOf(32 * 1024 + 1))).toThrow(/32768 bytes of JSON\. Got 32769 bytes/)

  const refusedOf = async (bytes: number) => {
    const call = { ...callOf(bytes), type: 'track', timestamp: '2026-01-15T09:30:00.000Z' }
    return JSON.parse((await post('batch', { batch: [call] }))?.body ?? '').refused
  }
  expect(await refusedOf(32 * 1024)).toEqual([])
  expect(await refusedOf(32 * 1024 + 1)).toMatchObject([{ code: 'call_too_large' }])
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

/** Every row of the document "Outbound event delivery". docs/conformance.md lists the names. */

import { createHmac } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createCollector } from '../../src/collector/collector.ts'
import { createDestination } from '../../src/destination/destination.ts'
import { LAST_START_MS } from '../../src/destination/schedule.ts'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS, WEBHOOKS_LIMIT } from '../../src/message/limits.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { createSender } from '../../src/sender/sender.ts'
import { capture, type EndpointOptions, fixtures, manualClock, startEndpoint } from '../../src/testing.ts'
import { CLIENT_ADDRESS, layPath } from './path.ts'

const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
const webhooks = [{ url: 'https://shop.example/webhooks' }]

async function listen(options?: EndpointOptions) {
  const endpoint = await startEndpoint(options)
  onTestFinished(() => endpoint.close())
  return endpoint
}

/** What a sender posts for a message, without posting it. */
const requestOf = (message: object, sharedSecret?: string) =>
  createSender({ webhooks, ...(sharedSecret !== undefined && { sharedSecret }) }).request(message as never)
const bodyOf = (message: object) => JSON.parse(Buffer.from(requestOf(message).body).toString())

/** A call posted straight to the collector, and what arrived of it. */
async function arrivalOf(type: string, call: object) {
  const path = layPath()
  const answer = await path.post(type, call)
  return { ...path, answer, message: path.captured.messages[0], request: path.captured.requests[0] }
}

test('Outbound · What it does · 1 forwards to up to five customer-owned endpoints, each delivery an HTTP POST', async () => {
  const endpoint = await listen()
  const five = [1, 2, 3, 4, 5].map((index) => ({ url: `${endpoint.url}/${index}` }))
  const sender = createSender({ webhooks: five })
  onTestFinished(() => sender.close())
  await sender.track({ userId: 'u', event: 'E' })
  expect(endpoint.requests.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
    [1, 2, 3, 4, 5].map((index) => `POST /webhooks/${index}`),
  )
})

test('Outbound · What it does · 2 accepts track, page, identify, group and alias; also delivers screen and delete', async () => {
  const { clock, destination, captured } = layPath()
  for (const message of Object.values(fixtures)) await destination.send(message)
  await clock.advance(0)
  expect(captured.messages.map(({ type }) => type).sort()).toEqual(Object.keys(fixtures).sort())
})

test('Outbound · What it does · 3 is addressed by the name Webhooks, case sensitive', async () => {
  const { destination } = layPath()
  const selects = async (integrations: object) =>
    (await destination.track({ userId: 'u', event: 'E', integrations: { ...integrations } })).queued
  expect(await selects({ Webhooks: false })).toBe(false)
  expect(await selects({ webhooks: false })).toBe(true)
  expect(await selects({ All: false, Webhooks: true })).toBe(true)
})

test('Outbound · What it does · 4 accepts data of every kind of source: web, mobile, server', async () => {
  const calls = [
    { channel: 'browser', anonymousId: 'a', context: { page: { path: '/' } } },
    { channel: 'mobile', anonymousId: 'a', context: { device: { model: 'Pixel 9' } } },
    { channel: 'server', userId: 'u', context: { library: { name: 'any' } } },
  ]
  for (const call of calls) {
    const { message } = await arrivalOf('track', { event: 'E', ...call })
    expect(message).toMatchObject({ type: 'track', ...call })
  }
})

test('Outbound · What it does · 5 once switched on, everything the collection API receives for the connected sources is forwarded', async () => {
  const { clock, client, destination, captured, arrive } = layPath({ destination: { enabled: false } })
  client.track({ userId: 'u', event: 'before' })
  expect(await arrive()).toEqual([])
  destination.enable()
  client.track({ userId: 'u', event: 'after' })
  client.identify({ userId: 'u' })
  await arrive()
  await clock.advance(0)
  expect(captured.messages).toMatchObject([{ event: 'after' }, { type: 'identify' }])
})

test('Outbound · What it does · 6 every call is sent with a context object', async () => {
  const { message } = await arrivalOf('track', { userId: 'u', event: 'E' })
  expect(message?.context).toMatchObject({ ip: CLIENT_ADDRESS })
  for (const { type, ...rest } of Object.values(fixtures)) {
    if (type !== 'delete') expect(bodyOf({ type, ...rest })).toHaveProperty('context')
  }
})

test('Outbound · Settings · sharedSecret: optional; when set, every request is signed', () => {
  expect(requestOf(fixtures.track).headers).not.toHaveProperty('X-Signature')
  expect(requestOf(fixtures.track, 'secret').headers).toHaveProperty('X-Signature')
})

test('Outbound · Settings · Webhook URL: required, full, with its http or https scheme', () => {
  expect(() => createDestination({ webhooks: [] })).toThrow(/^`webhooks` must be/)
  expect(() => createDestination({ webhooks: [{ url: 'shop.example/webhooks' }] })).toThrow(/full URL/)
  expect(() =>
    createSender({ webhooks: [{ url: 'http://shop.example' }, { url: 'https://shop.example' }] }),
  ).not.toThrow()
})

test('Outbound · Settings · the service list: up to 5 entries, each a URL and optional static headers for it', async () => {
  const endpoint = await listen()
  const sender = createSender({
    webhooks: [{ url: `${endpoint.url}/a`, headers: { 'X-Team': 'a' } }, { url: `${endpoint.url}/b` }],
  })
  onTestFinished(() => sender.close())
  await sender.delete({ userId: 'u' })
  const teams = endpoint.requests.map(({ path, headers }) => [path, headers['x-team']])
  expect(teams.sort()).toEqual([
    ['/webhooks/a', 'a'],
    ['/webhooks/b', undefined],
  ])
})

test('Outbound · Common fields · version: number 1, on every type but delete', () => {
  for (const message of Object.values(fixtures)) {
    expect(bodyOf(message).version).toBe(message.type === 'delete' ? undefined : 1)
  }
})

test('Outbound · Common fields · type: one of the seven', () => {
  for (const [type, message] of Object.entries(fixtures)) expect(bodyOf(message).type).toBe(type)
  expect(() => requestOf({ type: 'order', userId: 'u' })).toThrow(TypeError)
})

test('Outbound · Common fields · userId: string', () => {
  for (const message of Object.values(fixtures)) expect(bodyOf(message).userId).toBe('user-1')
  expect(() => requestOf({ type: 'page', userId: 7 })).toThrow(/userId/)
})

test('Outbound · Common fields · timestamp: ISO 8601 with milliseconds and a Z zone', async () => {
  for (const message of Object.values(fixtures)) expect(bodyOf(message).timestamp).toMatch(ISO_UTC)
  expect(bodyOf({ type: 'page', userId: 'u' }).timestamp).toMatch(ISO_UTC)
  const { message } = await arrivalOf('page', { userId: 'u', timestamp: '2026-01-15T10:30:00+01:00' })
  expect(message?.timestamp).toBe('2026-01-15T09:30:00.000Z')
})

test('Outbound · Fields of page · properties with path, referrer, title, url', () => {
  expect(bodyOf(fixtures.page).properties).toEqual(fixtures.page.properties)
})

test('Outbound · Fields of screen · name; context with device, os and app', () => {
  const { name, context } = fixtures.screen
  expect(bodyOf(fixtures.screen)).toMatchObject({ name, context })
})

test('Outbound · Fields of identify · traits, free-form', () => {
  expect(bodyOf(fixtures.identify).traits).toEqual(fixtures.identify.traits)
})

test('Outbound · Fields of track · event; properties, free-form', () => {
  const { event, properties } = fixtures.track
  expect(bodyOf(fixtures.track)).toMatchObject({ event, properties })
})

test('Outbound · Fields of alias · Previous ID and User ID, with spaces', async () => {
  expect(bodyOf(fixtures.alias)).toMatchObject({ 'Previous ID': 'anonymous-1', 'User ID': 'user-1' })
  const { request } = await arrivalOf('alias', { userId: 'new', previousId: 'old' })
  const body = JSON.parse(String(request?.bytes))
  expect(body).toMatchObject({ 'Previous ID': 'old', 'User ID': 'new', userId: 'new' })
  expect(body).not.toHaveProperty('previousId')
})

test('Outbound · Fields of group · groupId; traits, whose keys may contain spaces', () => {
  const { groupId, traits } = fixtures.group
  expect(bodyOf(fixtures.group)).toMatchObject({ groupId, traits })
  expect(Object.keys(traits)).toContain('Employee Count')
})

test('Outbound · Fields of delete · type, userId and timestamp, nothing else', () => {
  const { body } = requestOf({ ...fixtures.delete, version: 1, anonymousId: 'a', context: {}, messageId: 'm' })
  expect(JSON.parse(Buffer.from(body).toString())).toEqual(fixtures.delete)
})

test('Outbound · States · only while toggled on are requests forwarded', async () => {
  const { clock, destination, captured } = layPath()
  destination.disable()
  expect(await destination.delete({ userId: 'u' })).toEqual({ queued: false, reason: 'switched_off' })
  destination.enable()
  expect(await destination.delete({ userId: 'u' })).toMatchObject({ queued: true })
  await clock.advance(0)
  expect(captured.requests).toHaveLength(1)
})

test('Outbound · Delivery · Method: POST', () => {
  expect(requestOf(fixtures.page).method).toBe('POST')
})

test('Outbound · Delivery · Path: that of the webhook URL, nothing appended', async () => {
  const endpoint = await listen()
  const sender = createSender({ webhooks: [{ url: `${endpoint.url}/a/b?c=d&e` }] })
  onTestFinished(() => sender.close())
  await sender.delete({ userId: 'u' })
  expect(endpoint.requests[0]?.path).toBe('/webhooks/a/b?c=d&e')
})

test('Outbound · Delivery · User-Agent: a product token and /1.0', () => {
  expect(requestOf(fixtures.page).headers['User-Agent']).toBe('Hookline/1.0')
})

test('Outbound · Delivery · Content-Type: application/json', () => {
  expect(requestOf(fixtures.page).headers['Content-Type']).toBe('application/json')
})

test('Outbound · Delivery · X-Signature: present only when sharedSecret is set', async () => {
  const endpoint = await listen()
  for (const options of [{}, { sharedSecret: 'secret' }]) {
    const sender = createSender({ webhooks: [{ url: endpoint.url }], ...options })
    onTestFinished(() => sender.close())
    await sender.delete({ userId: 'u' })
  }
  expect(endpoint.requests.map(({ headers }) => 'x-signature' in headers)).toEqual([false, true])
})

test('Outbound · Delivery · Extra headers: the static pairs of that entry', () => {
  const sender = createSender({ webhooks: [{ ...webhooks[0], headers: { 'X-Team': 'growth' } }] as never })
  expect(sender.request(fixtures.page).headers['X-Team']).toBe('growth')
})

test('Outbound · Delivery · Body: one JSON message per request', async () => {
  const { clock, destination, captured } = layPath()
  await destination.submit([{ message: fixtures.page }, { message: fixtures.track }])
  await clock.advance(0)
  expect(captured.requests.map(({ bytes }) => JSON.parse(String(bytes)).type)).toEqual(['page', 'track'])
})

test('Outbound · Delivery · Response: within 5 seconds; its body decides nothing', async () => {
  expect(RESPONSE_TIME_MS).toBe(5_000)
  const endpoint = await listen({ script: [{ status: 200, body: '{"ok":false,"error":"no"}' }] })
  const sender = createSender({ webhooks: [{ url: endpoint.url }] })
  onTestFinished(() => sender.close())
  expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: true })
})

test('Outbound · Authentication · 1 is optional, enabled by setting sharedSecret', () => {
  expect(requestOf(fixtures.page).headers).not.toHaveProperty('X-Signature')
  expect(requestOf(fixtures.page, 's').headers['X-Signature']).toMatch(/^[0-9a-f]{40}$/)
})

test('Outbound · Authentication · 2 X-Signature is the lowercase hexadecimal HMAC-SHA1 of the body in UTF-8', () => {
  const { headers, body } = requestOf({ ...fixtures.track, event: 'Größe ☃' }, 'sécret')
  expect(headers['X-Signature']).toBe(createHmac('sha1', 'sécret').update(body).digest('hex'))
  expect(Buffer.from(body).toString('utf8')).toContain('Größe ☃')
})

test('Outbound · Authentication · 3 a receiver computes the same digest over what it received, and compares', async () => {
  const receiver = createReceiver({ secret: 'secret', onError: () => {} })
  for (const message of Object.values(fixtures)) {
    const { headers, body } = requestOf(message, 'secret')
    expect(await receiver.receive(body, headers)).toMatchObject({ ok: true })
    expect(await receiver.receive(body, { ...headers, 'X-Signature': '0'.repeat(40) })).toMatchObject({ status: 401 })
  }
})

test('Outbound · Authentication · 4 a self-signed certificate is an error, and no request is sent', async () => {
  const endpoint = await listen({ tls: 'self_signed' })
  const sender = createSender({ webhooks: [{ url: endpoint.url }] })
  onTestFinished(() => sender.close())
  expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: false, attempts: [{ error: 'self_signed' }] })
  expect(endpoint.bytesReceived).toBe(0)
})

const isEmitted = (type: string, call: object) => async () => {
  const { message } = await arrivalOf(type, call)
  expect(message).toMatchObject({ type })
}

test('Outbound · Events · page: a page call is received', isEmitted('page', { userId: 'u' }))
test('Outbound · Events · screen: a screen call is received', isEmitted('screen', { userId: 'u', name: 'S' }))
test('Outbound · Events · identify: an identify call is received, or a membership change is synced', async () => {
  await isEmitted('identify', { userId: 'u' })()
  const { clock, destination, captured } = layPath()
  await destination.syncAudience('Beta', ['u'])
  await clock.advance(0)
  expect(captured.messages).toMatchObject([{ type: 'identify', userId: 'u', traits: { beta: true } }])
})
test('Outbound · Events · track: a track call is received', isEmitted('track', { userId: 'u', event: 'E' }))
test('Outbound · Events · alias: an alias call is received', isEmitted('alias', { userId: 'u', previousId: 'p' }))
test('Outbound · Events · group: a group call is received', isEmitted('group', { userId: 'u', groupId: 'g' }))
test('Outbound · Events · delete: a deletion request is created; one notification for each affected source that has the destination on', async () => {
  const clock = manualClock()
  const captured = capture()
  const open = (enabled: boolean) => {
    const destination = createDestination({ webhooks, dispatcher: captured.dispatcher, clock, enabled })
    onTestFinished(() => void destination.close())
    return destination
  }
  const on = open(true)
  const collector = createCollector({
    sources: [
      { name: 'web', writeKey: 'a', destinations: [on] },
      { name: 'app', writeKey: 'b', destinations: [on] },
      { name: 'server', writeKey: 'c', destinations: [open(false)] },
    ],
    clock,
  })
  expect(await collector.delete('u')).toEqual([
    { source: 'web', queued: 1 },
    { source: 'app', queued: 1 },
    { source: 'server', queued: 0 },
  ])
  await clock.advance(0)
  // Two notifications, not one that arrives twice: they differ in the only field that can.
  const timestamps = [0, 1].map((ms) => new Date(clock.now() + ms).toISOString())
  expect(captured.messages).toEqual(timestamps.map((timestamp) => ({ type: 'delete', userId: 'u', timestamp })))
})

test('Outbound · Audiences · 1 an identify for each user added to or removed from the audience', async () => {
  const { clock, destination, captured } = layPath()
  await destination.syncAudience('Beta', ['new'], { previous: ['old'] })
  await clock.advance(0)
  expect(captured.messages.map(({ type, userId }) => [type, userId])).toEqual([
    ['identify', 'new'],
    ['identify', 'old'],
  ])
})

test('Outbound · Audiences · 2 the property is the snake_case name; true for a member, false for one no longer', async () => {
  const { clock, destination, captured } = layPath()
  await destination.syncAudience('High Value Users', ['new'], { previous: ['old'] })
  await clock.advance(0)
  expect(captured.messages).toMatchObject([
    { userId: 'new', traits: { high_value_users: true } },
    { userId: 'old', traits: { high_value_users: false } },
  ])
})

test('Outbound · Audiences · 3 the first sync sends everyone, later ones only whose membership changed', async () => {
  const { clock, destination, captured } = layPath()
  const previous = await destination.syncAudience('Beta', ['a', 'b', 'c'])
  await clock.advance(0)
  expect(captured.messages.map(({ userId }) => userId)).toEqual(['a', 'b', 'c'])
  await destination.syncAudience('Beta', ['a', 'b', 'd'], { previous })
  await clock.advance(0)
  expect(captured.messages.slice(3)).toMatchObject([
    { userId: 'd', traits: { beta: true } },
    { userId: 'c', traits: { beta: false } },
  ])
})

test('Outbound · Errors · No response within 5 seconds: a timeout error is logged and the event is retried later', async () => {
  const { clock, destination, reports } = layPath({ script: ['hang', 200] })
  await destination.delete({ userId: 'u' })
  await clock.advance(RESPONSE_TIME_MS)
  expect(reports).toMatchObject([{ status: 'retrying', latest: [{ error: 'timeout', durationMs: 5_000 }] }])
  await clock.advance(60_000)
  expect(reports.at(-1)).toMatchObject({ status: 'delivered' })
})

test('Outbound · Errors · Response with a 5xx status: retried multiple times, for at most 4 hours', async () => {
  const { clock, destination, captured, reports } = layPath({ script: [503] })
  await destination.delete({ userId: 'u' })
  const start = clock.now()
  await clock.advance(2 * RETRY_WINDOW_MS)
  const starts = reports.at(-1)?.attempts.map(({ at }) => at.getTime() - start) ?? []
  expect(captured.requests.length).toBeGreaterThan(10)
  expect(Math.max(...starts)).toBe(LAST_START_MS)
  expect(reports.at(-1)).toMatchObject({ status: 'failed', reason: 'window_over' })
})

test('Outbound · Errors · Self-signed certificate: an error is raised, no request is sent', async () => {
  const endpoint = await listen({ tls: 'self_signed' })
  const reports: unknown[] = []
  const destination = createDestination({
    webhooks: [{ url: endpoint.url }],
    onAttempt: (report) => reports.push(report),
  })
  await destination.delete({ userId: 'u' })
  await destination.close()
  expect(reports).toMatchObject([{ status: 'failed', reason: 'refused', latest: [{ error: 'self_signed' }] }])
  expect(endpoint.bytesReceived).toBe(0)
})

test('Outbound · Errors · Several URLs and any one succeeds: processed, not retried to the others', async () => {
  const urls = ['a', 'b', 'c'].map((name) => ({ url: `https://${name}.example/` }))
  const { clock, destination, captured, reports } = layPath({
    destination: { webhooks: urls },
    script: [({ url }) => (url.includes('b.example') ? 200 : 500)],
  })
  await destination.delete({ userId: 'u' })
  await clock.advance(2 * RETRY_WINDOW_MS)
  expect(captured.requests).toHaveLength(3)
  expect(reports).toMatchObject([{ status: 'delivered' }])
})

test('Outbound · Limits · Webhook URLs per destination: 5', () => {
  expect(WEBHOOKS_LIMIT).toBe(5)
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ url: `https://shop.example/${index}` }))
  expect(() => createSender({ webhooks: many(5) })).not.toThrow()
  expect(() => createSender({ webhooks: many(6) })).toThrow(
    /^`webhooks` must be a list of 1 to 5 entries\. Got 6 entries\./,
  )
})

test('Outbound · Limits · Response time allowed per request: 5 seconds', async () => {
  const { clock, destination, reports } = layPath({ script: ['hang'] })
  await destination.delete({ userId: 'u' })
  await clock.advance(4_999)
  expect(reports).toHaveLength(0)
  await clock.advance(1)
  expect(reports).toMatchObject([{ latest: [{ error: 'timeout' }] }])
})

test('Outbound · Limits · Retry window for 5xx responses: 4 hours', async () => {
  expect(RETRY_WINDOW_MS).toBe(4 * 60 * 60 * 1_000)
  const { clock, destination, reports } = layPath({ script: [500] })
  await destination.delete({ userId: 'u' })
  await clock.advance(RETRY_WINDOW_MS - 2 * RESPONSE_TIME_MS)
  expect(reports.at(-1)?.status).toBe('retrying')
  await clock.advance(2 * RESPONSE_TIME_MS)
  expect(reports.at(-1)?.status).toBe('failed')
})

test('Outbound · Versioning · version 1, and the name Webhooks', async () => {
  expect(bodyOf({ ...fixtures.track, version: 7 }).version).toBe(1)
  const { destination } = layPath()
  expect(await destination.send({ ...fixtures.track, integrations: { All: false, Webhooks: true } })).toMatchObject({
    queued: true,
  })
})

/** Every row of the document "Outbound event delivery". docs/conformance.md lists the names. */

import { createHmac } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { createCollector } from '../../src/collect/create-collector.ts'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS, WEBHOOKS_LIMIT } from '../../src/protocol/limits.ts'
import type { Message } from '../../src/protocol/message.ts'
import type { CallType } from '../../src/protocol/type-table.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { LAST_START_MS } from '../../src/send/schedule.ts'
import { capture, fixtures, manualClock, type Script, type ScriptedEndpoint, startEndpoint } from '../../src/testing.ts'
import { watchConsole } from '../support/console.ts'
import { CALLS, CLIENT_ADDRESS, layPath } from './path.ts'

const ISO_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/
const webhooks = [{ url: 'https://shop.example/webhooks' }]
const CALL_TYPES = Object.keys(CALLS) as CallType[]

/** Closes an endpoint when the test is over. */
function forThisTest<Endpoint extends ScriptedEndpoint>(endpoint: Endpoint): Endpoint {
  onTestFinished(() => endpoint.close())
  return endpoint
}

async function requestOf(options: Partial<DestinationOptions> = {}, message: Message = fixtures.track) {
  const { clock, destination, captured } = layPath({ destination: options })
  await destination.send(message)
  await clock.advance(0)
  expect(captured.requests).toHaveLength(1)
  return captured.requests[0] as (typeof captured.requests)[0]
}

async function arrivalOf(type: string, call: object): Promise<Record<string, unknown>> {
  const { captured, post } = layPath()
  await post(type, call)
  return JSON.parse(String(captured.requests[0]?.bytes))
}

async function bodiesOfAll(fields: object = {}) {
  const { clock, destination, captured, post } = layPath()
  for (const type of CALL_TYPES) await post(type, { ...CALLS[type], ...fields })
  await destination.delete({ userId: 'u', ...fields })
  await clock.advance(0)
  const bodies: Record<string, unknown>[] = captured.requests.map(({ bytes }) => JSON.parse(String(bytes)))
  expect(bodies.map(({ type }) => type)).toEqual([...CALL_TYPES, 'delete'])
  return bodies
}

test('Outbound · What it does · 1 forwards in real time to up to five customer-owned endpoints, each delivery an HTTP POST', async () => {
  const five = [1, 2, 3, 4, 5].map((index) => ({ url: `https://shop.example/${index}` }))
  const { clock, destination, captured } = layPath({ destination: { webhooks: five } })
  await destination.track(CALLS.track)
  await clock.advance(0)
  const made = captured.requests.map(({ method, url }) => `${method} ${url}`)
  expect(made.sort()).toEqual(five.map(({ url }) => `POST ${url}`))
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
  expect(await selects({ All: false, webhooks: true })).toBe(false)
})

test('Outbound · What it does · 4 accepts data of every kind of source: web, mobile, server', async () => {
  const calls = [
    { channel: 'browser', anonymousId: 'a', context: { page: { path: '/' } } },
    { channel: 'mobile', anonymousId: 'a', context: { device: { model: 'Pixel 9' } } },
    { channel: 'server', userId: 'u', context: { library: { name: 'any' } } },
  ]
  for (const call of calls) {
    const body = await arrivalOf('track', { event: 'E', ...call })
    expect(body).toMatchObject({ type: 'track', ...call })
  }
})

test('Outbound · What it does · 5 once switched on, everything the collection API receives for the connected sources is forwarded', async () => {
  const { clock, client, destination, captured, arrive, post } = layPath({ destination: { enabled: false } })
  client.track({ userId: 'u', event: 'before' })
  expect(await arrive()).toEqual([])
  destination.enable()
  for (const type of CALL_TYPES) {
    await post(type, CALLS[type])
    await post(type, CALLS[type], 'other key')
  }
  await post('batch', { batch: [{ type: 'track', userId: 'u', event: 'last' }] })
  await clock.advance(60_000)
  expect(captured.messages.map(({ type }) => type)).toEqual([...CALL_TYPES, 'track'])
})

test('Outbound · What it does · 6 every call is sent with a context object', async () => {
  for (const { type, context } of await bodiesOfAll()) {
    if (type !== 'delete') expect(context).toEqual({ ip: CLIENT_ADDRESS })
  }
  const device = { device: { model: 'Pixel 9' }, ip: '198.51.100.1' }
  for (const { type, context } of await bodiesOfAll({ context: device })) {
    if (type !== 'delete') expect(context).toEqual(device)
  }
  const { clock, destination, captured } = layPath()
  for (const type of CALL_TYPES) await destination[type](CALLS[type] as never)
  await clock.advance(0)
  for (const { context } of captured.messages) expect(context).toEqual({})
})

test('Outbound · Settings · sharedSecret: optional; when set, every request is signed', async () => {
  for (const message of Object.values(fixtures)) {
    expect((await requestOf({}, message)).headers).not.toHaveProperty('x-signature')
    expect((await requestOf({ sharedSecret: 'secret' }, message)).headers).toHaveProperty('x-signature')
  }
  // To each URL, and at each attempt.
  const { clock, destination, captured } = layPath({
    script: [500, 500, 200],
    destination: { sharedSecret: 'secret', webhooks: ['a', 'b'].map((name) => ({ url: `https://${name}.example/` })) },
  })
  await destination.send(fixtures.track)
  await clock.advance(60_000)
  expect(captured.requests).toHaveLength(4)
  for (const { headers } of captured.requests) expect(headers).toHaveProperty('x-signature')
})

test('Outbound · Settings · Webhook URL: required, full, with its http or https scheme', async () => {
  expect(() => createDestination({ webhooks: [] })).toThrow(/^`webhooks` must be/)
  for (const url of ['shop.example/webhooks', '/webhooks', 'ftp://shop.example/webhooks']) {
    expect(() => createDestination({ webhooks: [{ url }] })).toThrow(/full URL/)
  }
  const plain = forThisTest(await startEndpoint())
  const secure = forThisTest(await startEndpoint({ tls: 'private_ca' }))
  for (const [url, trust] of [[plain.url, {}] as const, [secure.url, { ca: secure.ca }] as const]) {
    const sender = createSender({ webhooks: [{ url }], ...trust })
    onTestFinished(() => sender.close())
    expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: true })
  }
})

test('Outbound · Settings · the service list: up to 5 entries, each a URL and optional static headers for it', async () => {
  const teams = [{ 'X-Team': 'a', 'X-Shop': '1' }, { 'X-Team': 'b' }, undefined]
  const { clock, destination, captured } = layPath({
    destination: {
      webhooks: teams.map((headers, index) => ({ url: `https://shop.example/${index}`, ...(headers && { headers }) })),
    },
  })
  await destination.delete({ userId: 'u' })
  await clock.advance(0)
  expect(captured.requests.map(({ path, headers }) => [path, headers['x-team'], headers['x-shop']])).toEqual([
    ['/0', 'a', '1'],
    ['/1', 'b', undefined],
    ['/2', undefined, undefined],
  ])
})

test('Outbound · Common fields · version: number 1, on every type but delete', async () => {
  for (const fields of [{}, { version: 7 }]) {
    for (const body of await bodiesOfAll(fields)) {
      if (body.type === 'delete') expect(body).not.toHaveProperty('version')
      else expect(body.version).toBe(1)
    }
  }
})

test('Outbound · Common fields · type: one of the seven', async () => {
  const types = (await bodiesOfAll()).map(({ type }) => type)
  expect(types.sort()).toEqual(['alias', 'delete', 'group', 'identify', 'page', 'screen', 'track'])
  const { destination } = layPath()
  await expect(destination.send({ type: 'order', userId: 'u' } as never)).rejects.toThrow(TypeError)
})

test('Outbound · Common fields · userId: string', async () => {
  for (const body of await bodiesOfAll({ userId: 'user-7' })) expect(body.userId).toBe('user-7')
  const { destination } = layPath()
  for (const type of [...CALL_TYPES, 'delete'] as const) {
    const call = destination.send({ ...fixtures[type], userId: 7, 'User ID': 7 } as never)
    await expect(call).rejects.toThrow(/userId/)
  }
})

test('Outbound · Common fields · timestamp: ISO 8601 with milliseconds and a Z zone', async () => {
  for (const body of await bodiesOfAll()) expect(body.timestamp).toMatch(ISO_UTC)
  for (const text of ['10:30:00+01:00', '09:30:00Z', '09:30Z', '09:30:00.000999Z']) {
    const timestamp = `2026-01-15T${text}`
    for (const body of await bodiesOfAll({ timestamp })) expect(body.timestamp).toBe('2026-01-15T09:30:00.000Z')
  }
  for (const time of ['1969-07-20T20:17:40.123', '9999-12-31T23:59:59.999']) {
    for (const body of await bodiesOfAll({ timestamp: `${time}+00:00` })) expect(body.timestamp).toBe(`${time}Z`)
  }
})

test('Outbound · Fields of page · properties with path, referrer, title, url', async () => {
  const body = await arrivalOf('page', fixtures.page)
  expect(body.properties).toEqual(fixtures.page.properties)
  expect(Object.keys(fixtures.page.properties)).toEqual(['path', 'referrer', 'title', 'url'])
})

test('Outbound · Fields of screen · name; context with device, os and app', async () => {
  const { name, context } = fixtures.screen
  const body = await arrivalOf('screen', fixtures.screen)
  expect(body).toMatchObject({ name, context })
  expect(context).toEqual({
    device: { model: expect.any(String), type: expect.any(String) },
    os: { name: expect.any(String), version: expect.any(String) },
    app: { build: expect.any(String), name: expect.any(String), version: expect.any(String) },
  })
})

test('Outbound · Fields of identify · traits, free-form', async () => {
  const body = await arrivalOf('identify', fixtures.identify)
  expect(body.traits).toEqual(fixtures.identify.traits)
})

test('Outbound · Fields of track · event; properties, free-form', async () => {
  const { event, properties } = fixtures.track
  const body = await arrivalOf('track', fixtures.track)
  expect(body.event).toBe(event)
  expect(body.properties).toEqual(properties)
})

test('Outbound · Fields of alias · Previous ID and User ID, with spaces', async () => {
  const body = await arrivalOf('alias', { userId: 'new', previousId: 'old' })
  expect(body).toMatchObject({ 'Previous ID': 'old', 'User ID': 'new', userId: 'new' })
  expect(body).not.toHaveProperty('previousId')
  const { bytes } = await requestOf({}, fixtures.alias)
  expect(JSON.parse(String(bytes))).toMatchObject({ 'Previous ID': 'anonymous-1', 'User ID': 'user-1' })
})

test('Outbound · Fields of group · groupId; traits, whose keys may contain spaces', async () => {
  const { groupId, traits } = fixtures.group
  const body = await arrivalOf('group', fixtures.group)
  expect(body.groupId).toBe(groupId)
  expect(body.traits).toEqual(traits)
  expect(Object.keys(traits)).toContain('Employee Count')
})

test('Outbound · Fields of delete · type, userId and timestamp, nothing else', async () => {
  const more = { version: 1, anonymousId: 'a', context: {}, messageId: 'm' }
  const { bytes } = await requestOf({}, { ...fixtures.delete, ...more })
  expect(JSON.parse(String(bytes))).toEqual(fixtures.delete)
})

test('Outbound · States · only while toggled on are requests forwarded', async () => {
  const { clock, destination, captured } = layPath({ script: [500, 200] })
  destination.disable()
  expect(await destination.delete({ userId: 'u' })).toEqual({ queued: false, reason: 'switched_off' })
  destination.enable()
  expect(await destination.delete({ userId: 'u' })).toMatchObject({ queued: true })
  await clock.advance(0)
  expect(captured.requests).toHaveLength(1)
  destination.disable()
  await clock.advance(RETRY_WINDOW_MS / 2)
  expect(captured.requests).toHaveLength(1)
  destination.enable()
  await clock.advance(10_000)
  expect(captured.requests).toHaveLength(2)
})

test('Outbound · Delivery · Method: POST', async () => {
  const endpoint = forThisTest(await startEndpoint())
  const sender = createSender({ webhooks: [{ url: endpoint.url }] })
  onTestFinished(() => sender.close())
  await sender.send(fixtures.page)
  expect(endpoint.requests.map(({ method }) => method)).toEqual(['POST'])
  expect(sender.request(fixtures.page).method).toBe('POST')
})

test('Outbound · Delivery · Path: that of the webhook URL, nothing appended', async () => {
  const endpoint = forThisTest(await startEndpoint())
  const paths = ['/', '/a/b', '/a/b/', '/a/b?c=d&e']
  const { origin } = new URL(endpoint.url)
  const sender = createSender({ webhooks: paths.map((path) => ({ url: origin + path })) })
  onTestFinished(() => sender.close())
  await sender.delete({ userId: 'u' })
  expect(endpoint.requests.map(({ path }) => path).sort()).toEqual(paths)
})

test('Outbound · Delivery · User-Agent: a product token and /1.0', async () => {
  expect((await requestOf()).headers['user-agent']).toBe('Hookline/1.0')
  expect((await requestOf({ userAgent: 'Shop' })).headers['user-agent']).toBe('Shop/1.0')
  expect(() => createDestination({ webhooks, userAgent: 'My Shop' })).toThrow(/product token/)
})

test('Outbound · Delivery · Content-Type: application/json', async () => {
  expect((await requestOf()).headers['content-type']).toBe('application/json')
})

test('Outbound · Delivery · X-Signature: present only when sharedSecret is set', async () => {
  const endpoint = forThisTest(await startEndpoint())
  for (const options of [{}, { sharedSecret: 'secret' }]) {
    const sender = createSender({ webhooks: [{ url: endpoint.url }], ...options })
    onTestFinished(() => sender.close())
    await sender.delete({ userId: 'u' })
  }
  expect(endpoint.requests.map(({ headers }) => 'x-signature' in headers)).toEqual([false, true])
})

test('Outbound · Delivery · Extra headers: the static pairs of that entry', async () => {
  const headers = { 'X-Team': 'growth', Authorization: 'Bearer token' }
  const options = { webhooks: [{ url: 'https://shop.example/', headers }] }
  expect((await requestOf(options)).headers).toMatchObject({ 'x-team': 'growth', authorization: 'Bearer token' })
})

test('Outbound · Delivery · Body: one JSON message per request', async () => {
  const { clock, destination, captured } = layPath()
  await destination.submit([{ message: fixtures.page }, { message: fixtures.track }])
  await clock.advance(0)
  expect(captured.requests.map(({ bytes }) => JSON.parse(String(bytes)).type)).toEqual(['page', 'track'])
})

test('Outbound · Delivery · Response: within 5 seconds; its body decides nothing', async () => {
  expect(RESPONSE_TIME_MS).toBe(5_000)
  const outcomeOf = async (step: Script[number]) => {
    const { clock, destination, reports } = layPath({ script: [step] })
    await destination.delete({ userId: 'u' })
    await clock.advance(RESPONSE_TIME_MS)
    return reports[0]?.status
  }
  expect(await outcomeOf({ status: 200, delayMs: 4_999 })).toBe('delivered')
  expect(await outcomeOf({ status: 200, delayMs: 5_001 })).toBe('retrying')
  expect(await outcomeOf({ status: 200, body: '{"ok":false,"error":"no"}' })).toBe('delivered')
  expect(await outcomeOf({ status: 500, body: '{"success":true}' })).toBe('retrying')
})

test('Outbound · Authentication · 1 is optional, enabled by setting sharedSecret', async () => {
  expect((await requestOf()).headers).not.toHaveProperty('x-signature')
  expect((await requestOf({ sharedSecret: 's' })).headers['x-signature']).toMatch(/^[0-9a-f]{40}$/)
})

test('Outbound · Authentication · 2 X-Signature is the lowercase hexadecimal HMAC-SHA1 of the body in UTF-8', async () => {
  const long = 'a secret that is longer than one block of the hash, which is 64 bytes long'
  for (const sharedSecret of ['secret', 'sécret', long]) {
    const { headers, bytes } = await requestOf({ sharedSecret }, { ...fixtures.track, event: 'Größe ☃' })
    expect(headers['x-signature']).toBe(createHmac('sha1', sharedSecret).update(bytes).digest('hex'))
    expect(bytes.toString('utf8')).toContain('Größe ☃')
  }
})

test('Outbound · Authentication · 3 a receiver computes the same digest over what it received, and compares', async () => {
  const receiver = createReceiver({ secret: 'secret', onError: () => {} })
  for (const message of Object.values(fixtures)) {
    const { headers, bytes } = await requestOf({ sharedSecret: 'secret' }, message)
    const receive = (body: Uint8Array, signature = headers['x-signature']) =>
      receiver.receive(body, { ...headers, 'x-signature': signature })
    expect(await receive(bytes)).toMatchObject({ ok: true })
    expect(await receive(bytes, '0'.repeat(40))).toMatchObject({ status: 401 })
    expect(await receive(Buffer.concat([bytes, Buffer.from(' ')]))).toMatchObject({ status: 401 })
  }
})

test('Outbound · Authentication · 4 a self-signed certificate is an error, and no request is sent', async () => {
  const endpoint = forThisTest(await startEndpoint({ tls: 'self_signed' }))
  for (const trust of [{}, { ca: endpoint.ca }]) {
    const sender = createSender({ webhooks: [{ url: endpoint.url }], ...trust })
    onTestFinished(() => sender.close())
    expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: false, attempts: [{ error: 'self_signed' }] })
  }
  expect(endpoint.bytesReceived).toBe(0)
})

const isEmitted = (type: CallType) => async () => {
  const { captured, post } = layPath()
  await post(type, CALLS[type])
  await post(type, CALLS[type], 'other key')
  expect(captured.messages).toMatchObject([{ type }])
}

test('Outbound · Events · page: a page call is received', isEmitted('page'))
test('Outbound · Events · screen: a screen call is received', isEmitted('screen'))
test('Outbound · Events · identify: an identify call is received, or a membership change is synced', async () => {
  await isEmitted('identify')()
  const { clock, destination, captured } = layPath()
  await destination.syncAudience('Beta', ['u'])
  await clock.advance(0)
  expect(captured.messages).toMatchObject([{ type: 'identify', userId: 'u', traits: { beta: true } }])
})
test('Outbound · Events · track: a track call is received', isEmitted('track'))
test('Outbound · Events · alias: an alias call is received', isEmitted('alias'))
test('Outbound · Events · group: a group call is received', isEmitted('group'))
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

test('Outbound · Audiences · 1 audiences and computed traits are user properties; an identify for each user added or removed', async () => {
  const { clock, destination, captured } = layPath()
  await destination.syncAudience('Beta', ['new', 'both'], { previous: ['both', 'old'] })
  await destination.syncTrait('Total Spent', [['new', 12]])
  await clock.advance(0)
  expect(captured.messages).toMatchObject([
    { type: 'identify', userId: 'new', traits: { beta: true } },
    { type: 'identify', userId: 'old', traits: { beta: false } },
    { type: 'identify', userId: 'new', traits: { total_spent: 12 } },
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
  for (const name of ['highValueUsers', 'High-Value users!', 'high_value_users']) {
    await destination.syncAudience(name, ['new'])
    await clock.advance(0)
    expect(captured.messages.at(-1)).toMatchObject({ traits: { high_value_users: true } })
  }
})

test('Outbound · Audiences · 3 the first sync sends everyone, later ones only whose membership changed', async () => {
  const { clock, destination, captured } = layPath()
  const previous = await destination.syncAudience('Beta', ['a', 'b', 'c'])
  await clock.advance(0)
  expect(captured.messages.map(({ userId }) => userId)).toEqual(['a', 'b', 'c'])
  const second = await destination.syncAudience('Beta', ['a', 'b', 'd'], { previous })
  await clock.advance(0)
  expect(captured.messages.slice(3)).toMatchObject([
    { userId: 'd', traits: { beta: true } },
    { userId: 'c', traits: { beta: false } },
  ])
  await destination.syncAudience('Beta', ['a', 'b', 'c', 'd'], { previous: second })
  await clock.advance(0)
  expect(captured.messages.slice(5)).toMatchObject([{ userId: 'c', traits: { beta: true } }])
})

test('Outbound · Errors · No response within 5 seconds: a timeout error is logged and the event is retried later', async () => {
  const printed = watchConsole()
  const { clock, destination, captured } = layPath({ script: ['hang', 200], destination: { logger: console } })
  await destination.delete({ userId: 'u' })
  await clock.advance(RESPONSE_TIME_MS)
  const text = expect.stringMatching(/ The next attempt follows at 2026-.*: timeout \(.*\) after 5000 ms$/)
  expect(printed).toEqual([{ level: 'warn', text }])
  await clock.advance(60_000)
  expect(captured.requests).toHaveLength(2)
  expect(printed).toHaveLength(1)
})

test('Outbound · Errors · Response with a 5xx status: retried multiple times, for at most 4 hours', async () => {
  const attemptsAfter = async (status: number) => {
    const { clock, destination, captured, reports } = layPath({ script: [status] })
    await destination.delete({ userId: 'u' })
    const start = clock.now()
    await clock.advance(2 * RETRY_WINDOW_MS)
    const starts = reports.at(-1)?.attempts.map(({ at }) => at.getTime() - start) ?? []
    return { count: captured.requests.length, last: Math.max(...starts), reason: reports.at(-1)?.reason }
  }
  for (const status of [500, 502, 503, 504, 599]) {
    const { count, last, reason } = await attemptsAfter(status)
    expect(count).toBeGreaterThan(10)
    expect({ last, reason }).toEqual({ last: LAST_START_MS, reason: 'window_over' })
  }
  for (const status of [400, 401, 404, 422]) expect(await attemptsAfter(status)).toMatchObject({ count: 1 })
})

test('Outbound · Errors · Self-signed certificate: an error is raised, no request is sent', async () => {
  const endpoint = forThisTest(await startEndpoint({ tls: 'self_signed' }))
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
  const names = ['a', 'b', 'c']
  for (const accepting of names) {
    const { clock, destination, captured, reports } = layPath({
      destination: { webhooks: names.map((name) => ({ url: `https://${name}.example/` })) },
      script: [({ url }) => (url.includes(`${accepting}.example`) ? 200 : 500)],
    })
    await destination.delete({ userId: 'u' })
    await clock.advance(2 * RETRY_WINDOW_MS)
    expect(captured.requests).toHaveLength(3)
    expect(reports).toMatchObject([{ status: 'delivered' }])
  }
  // In a later round, beside failures of every kind.
  let round = 0
  const { clock, destination, captured, reports } = layPath({
    destination: { webhooks: ['a', 'b', 'c'].map((name) => ({ url: `https://${name}.example/` })) },
    script: [
      ({ url }) => {
        if (url.includes('a.example')) round++
        if (round === 1) return 500
        return url.includes('b.example') ? 200 : url.includes('a.example') ? 'self_signed' : 'hang'
      },
    ],
  })
  await destination.delete({ userId: 'u' })
  await clock.advance(2 * RETRY_WINDOW_MS)
  expect(captured.requests).toHaveLength(6)
  expect(reports).toMatchObject([{ status: 'retrying' }, { status: 'delivered' }])
})

test('Outbound · Limits · Webhook URLs per destination: 5', () => {
  expect(WEBHOOKS_LIMIT).toBe(5)
  const many = (count: number) => ({
    webhooks: Array.from({ length: count }, (_, index) => ({ url: `https://shop.example/${index}` })),
  })
  for (const create of [createSender, createDestination]) {
    expect(() => create(many(5))).not.toThrow()
    expect(() => create(many(6))).toThrow(/^`webhooks` must be a list of 1 to 5 entries\. Got 6 entries\./)
  }
  expect(() => layPath().destination.update(many(6))).toThrow(/Got 6 entries\./)
})

test('Outbound · Limits · Response time allowed per request: 5 seconds', async () => {
  // Without an answer; with its headers in time; with headers and bytes in time, but not the last byte.
  for (const step of ['hang', { status: 200, dripMs: 60_000 }, 'drip'] as const) {
    const { clock, destination, reports } = layPath({ script: [step] })
    await destination.delete({ userId: 'u' })
    await clock.advance(4_999)
    expect(reports).toHaveLength(0)
    await clock.advance(1)
    expect(reports).toMatchObject([{ latest: [{ error: 'timeout', durationMs: 5_000 }] }])
  }
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
  for (const { type, version } of await bodiesOfAll()) expect(version).toBe(type === 'delete' ? undefined : 1)
  const { destination } = layPath()
  const isQueued = async (integrations: object) =>
    (await destination.send({ ...fixtures.track, integrations: { ...integrations } })).queued
  expect(await isQueued({ All: false, Webhooks: true })).toBe(true)
  expect(await isQueued({ All: false, Webhook: true })).toBe(false)
})

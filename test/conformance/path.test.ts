/**
 * Rules of docs/specification.md that need the whole path, in one process, on one clock and without sockets: client → collector →
 * destination → what arrives.
 */

import type { Dispatcher } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import type { ClientOptions } from '../../src/collect/client-options.ts'
import type { CollectorOptions } from '../../src/collect/collector-options.ts'
import { createClient } from '../../src/collect/create-client.ts'
import { type Collector, type CollectorDestination, createCollector } from '../../src/collector.ts'
import type { EndpointAnswer } from '../../src/host/endpoint.ts'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../../src/protocol/limits.ts'
import type { CallType } from '../../src/protocol/type-table.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { LAST_START_MS } from '../../src/send/schedule.ts'
import { type CapturedStep, capture, fixtures, manualClock, type Script } from '../../src/testing.ts'
import { request } from '../support/collect.ts'
import { watchConsole } from '../support/console.ts'
import { hmac } from '../support/hmac.ts'

const CLIENT_ADDRESS = '203.0.113.7'

const CALLS = {
  page: { userId: 'u' },
  screen: { userId: 'u' },
  identify: { userId: 'u' },
  track: { userId: 'u', event: 'E' },
  alias: { userId: 'u', previousId: 'p' },
  group: { userId: 'u', groupId: 'g' },
} as const satisfies Record<CallType, object>
const CALL_TYPES = Object.keys(CALLS) as CallType[]
const FIVE = ['identify', 'track', 'page', 'group', 'alias'] as const

interface ClientRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly answer: EndpointAnswer
}

interface PathOptions {
  /** The key of the client. Default: that of a source with the destination. `other key` is that of one without. */
  readonly writeKey?: string
  readonly others?: readonly CollectorDestination[]
  readonly client?: Partial<ClientOptions>
  readonly collector?: Partial<CollectorOptions>
  readonly destination?: Partial<DestinationOptions>
  /** What the customer's endpoint answers. Default: 200 to everything. */
  readonly script?: Script<CapturedStep>
}

function layPath(options: PathOptions = {}) {
  const { writeKey = 'key', others = [], script = [200] } = options
  const clock = manualClock()
  const captured = capture({ script, clock })
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/webhooks' }],
    dispatcher: captured.dispatcher,
    clock,
    random: () => 0.5,
    onAttempt: (report) => reports.push(report),
    ...options.destination,
  })
  const collector = createCollector({
    sources: [
      { name: 'shop', writeKey: 'key', kind: 'web', destinations: [destination, ...others] },
      { name: 'other', writeKey: 'other key', destinations: [] },
    ],
    clock,
    ...options.collector,
  })
  const requests: ClientRequest[] = []
  const client = createClient(writeKey, {
    endpoint: 'https://collector.example/v1/batch',
    dispatcher: { dispatch: toCollector(collector, requests) },
    clock,
    ...options.client,
  })
  onTestFinished(async () => {
    await client.close({ timeoutMs: 0 })
    await destination.close({ graceMs: 0 })
  })

  return {
    clock,
    client,
    destination,
    requests,
    captured,
    reports,
    async post(type: string, call: object, key = 'key') {
      const headers = { 'content-type': 'application/json' }
      const remoteAddress = CLIENT_ADDRESS
      await collector.handle(request(`/v1/${type}`, { ...call, writeKey: key }, { headers, remoteAddress }))
      await clock.advance(0)
    },
    async arrive() {
      const flushed = client.flush()
      await clock.advance(0)
      await flushed
      await clock.advance(0)
      return captured.messages
    },
  }
}

function toCollector(collector: Collector, requests: ClientRequest[]): Dispatcher['dispatch'] {
  return ({ path, headers: list, body: bytes }, handler) => {
    const controller = { abort() {}, aborted: false, paused: false, reason: null, pause() {}, resume() {} }
    handler.onRequestStart?.(controller as never, null)
    const body = Buffer.from(bytes as Uint8Array)
    const headers = nameHeaders(list as readonly string[])
    void collector.handle(request(path, body, { headers, remoteAddress: CLIENT_ADDRESS }))?.then((answer) => {
      requests.push({ headers, body, answer })
      handler.onResponseStart?.(controller as never, answer.status, answer.headers, '')
      handler.onResponseData?.(controller as never, Buffer.from(answer.body))
      handler.onResponseEnd?.(controller as never, {})
    })
    return true
  }
}

/** @param list Each name, followed by its value. */
function nameHeaders(list: readonly string[]): Record<string, string> {
  const pairs = list.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), list[index + 1]]] : []))
  return Object.fromEntries(pairs)
}

/** Records a call, and returns what arrives of it. */
async function arrival(type: (typeof FIVE)[number], fields: object = {}, options: PathOptions = {}) {
  const path = layPath(options)
  path.client[type]({ ...CALLS[type], ...fields } as never)
  const [message] = await path.arrive()
  return { ...path, message }
}

/** The bodies of each call and of a deletion. */
async function bodiesOfAll(fields: object = {}): Promise<Record<string, unknown>[]> {
  const { clock, destination, captured, post } = layPath()
  for (const type of CALL_TYPES) await post(type, { ...CALLS[type], ...fields })
  await destination.delete({ userId: 'u', ...fields })
  await clock.advance(0)
  return captured.requests.map(({ bytes }) => JSON.parse(String(bytes)))
}

test('a call is forwarded at once, by a POST to each of up to five URLs', async () => {
  const webhooks = [1, 2, 3, 4, 5].map((index) => ({ url: `https://shop.example/${index}` }))
  const { clock, destination, captured } = layPath({ destination: { webhooks } })

  await destination.track(CALLS.track)
  await clock.advance(0)

  expect(captured.requests.map(({ method, url }) => `${method} ${url}`).sort()).toEqual(
    webhooks.map(({ url }) => `POST ${url}`),
  )
})

test('a destination has at most five URLs, also after an update', () => {
  const webhooks = [1, 2, 3, 4, 5, 6].map((index) => ({ url: `https://shop.example/${index}` }))
  expect(() => layPath({ destination: { webhooks } })).toThrow(/`webhooks`/)
  expect(() => layPath().destination.update({ webhooks })).toThrow(/`webhooks`/)
})

test('once a destination is switched on, everything of its sources is forwarded', async () => {
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

test('every message but a deletion has version 1 and a context, with the address of the client', async () => {
  const device = { device: { model: 'Pixel 9' }, ip: '198.51.100.1' }

  for (const [given, context] of [
    [{}, { ip: CLIENT_ADDRESS }],
    [{ context: device, version: 7 }, device],
  ] as const) {
    for (const { type, ...body } of await bodiesOfAll(given)) {
      if (type === 'delete') expect(body).toEqual({ userId: 'u', timestamp: expect.any(String) })
      else expect(body).toMatchObject({ version: 1, context })
    }
  }
})

test('the time of every message is ISO 8601 in UTC, with milliseconds', async () => {
  for (const [timestamp, sent] of [
    ['2026-01-15T10:30:00+01:00', '2026-01-15T09:30:00.000Z'],
    ['2026-01-15T09:30:00Z', '2026-01-15T09:30:00.000Z'],
    ['1969-07-20T20:17:40.123999Z', '1969-07-20T20:17:40.123Z'],
  ]) {
    expect((await bodiesOfAll({ timestamp })).map(({ timestamp }) => timestamp)).toEqual(Array(7).fill(sent))
  }
})

test('with a shared secret every request is signed, to each URL and at each attempt, and none without', async () => {
  const webhooks = ['a', 'b'].map((name) => ({ url: `https://${name}.example/` }))
  for (const [secret, count] of [
    [{ sharedSecret: 'secret' }, 4],
    [{}, 0],
  ] as const) {
    const { clock, destination, captured } = layPath({ script: [500, 500, 200], destination: { ...secret, webhooks } })

    await destination.send(fixtures.track)
    await clock.advance(60_000)

    expect(captured.requests).toHaveLength(4)
    expect(captured.requests.filter(({ headers }) => 'x-signature' in headers)).toHaveLength(count)
  }
})

test('the signature is the lowercase hexadecimal HMAC-SHA1 of the body in UTF-8', async () => {
  for (const sharedSecret of ['secret', 'sécret', 'x'.repeat(65)]) {
    const { clock, destination, captured } = layPath({ destination: { sharedSecret } })
    await destination.send({ ...fixtures.track, event: 'Größe ☃' })
    await clock.advance(0)

    const [{ headers, bytes = Buffer.of() } = {}] = captured.requests
    expect(headers?.['x-signature']).toBe(hmac(bytes, sharedSecret))
    expect(bytes.toString('utf8')).toContain('Größe ☃')
  }
})

test('a request has the user agent, the content type, one message, and the static headers of its URL', async () => {
  const { clock, destination, captured } = layPath({
    destination: {
      userAgent: 'Shop',
      webhooks: [{ url: 'https://shop.example/a/?b=c', headers: { 'X-Team': 'growth' } }],
    },
  })

  await destination.submit([{ message: fixtures.page }, { message: fixtures.track }])
  await clock.advance(0)

  const headers = { 'user-agent': 'Shop/1.0', 'content-type': 'application/json', 'x-team': 'growth' }
  const request = { method: 'POST', url: 'https://shop.example/a/?b=c', headers }
  expect(captured.requests).toMatchObject([request, request])
  expect(captured.requests.map(({ bytes }) => JSON.parse(String(bytes)).type)).toEqual(['page', 'track'])
})

test('an answer counts by its status, within 5 seconds; its body decides nothing', async () => {
  const outcomeOf = async (step: Script[number]) => {
    const { clock, destination, reports } = layPath({ script: [step] })
    await destination.delete({ userId: 'u' })
    await clock.advance(RESPONSE_TIME_MS)
    return reports[0]?.status
  }

  expect(RESPONSE_TIME_MS).toBe(5_000)
  expect(await outcomeOf({ status: 200, delayMs: 4_999 })).toBe('delivered')
  expect(await outcomeOf({ status: 200, delayMs: 5_001 })).toBe('retrying')
  expect(await outcomeOf({ status: 200, body: '{"ok":false,"error":"no"}' })).toBe('delivered')
  expect(await outcomeOf({ status: 500, body: '{"success":true}' })).toBe('retrying')
})

test('no response within 5 seconds is logged as a timeout, and the message is sent again', async () => {
  const printed = watchConsole()
  const { clock, destination, captured } = layPath({ script: ['hang', 200], destination: { logger: console } })

  await destination.delete({ userId: 'u' })
  await clock.advance(5_000)
  expect(printed).toEqual([{ level: 'warn', text: expect.stringContaining('timeout') }])

  await clock.advance(60_000)
  expect([captured.requests.length, printed.length]).toEqual([2, 1])
})

test('a 5xx is retried for at most 4 hours, a 4xx is not', async () => {
  const attemptsAfter = async (status: number) => {
    const { clock, destination, captured, reports } = layPath({ script: [status] })
    await destination.delete({ userId: 'u' })
    const start = clock.now()
    await clock.advance(2 * RETRY_WINDOW_MS)
    const starts = reports.at(-1)?.attempts.map(({ at }) => at.getTime() - start) ?? []
    return { count: captured.requests.length, last: Math.max(...starts), reason: reports.at(-1)?.reason }
  }

  expect(RETRY_WINDOW_MS).toBe(4 * 60 * 60 * 1_000)
  for (const status of [500, 503, 599]) {
    const { count, ...end } = await attemptsAfter(status)
    expect(count).toBeGreaterThan(10)
    expect(end).toEqual({ last: LAST_START_MS, reason: 'window_over' })
  }
  for (const status of [400, 422]) expect(await attemptsAfter(status)).toMatchObject({ count: 1 })
})

test('of several URLs the first success ends the message for all of them', async () => {
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

test('an audience and a computed trait are an identify for each user added or removed', async () => {
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

test('a deletion request is one notification for each affected source that has the destination on', async () => {
  const { clock, destination, captured } = layPath()
  const off = layPath({ destination: { enabled: false } })
  const sources = ['web', 'app', 'server'].map((name) => {
    return { name, writeKey: name, destinations: [name === 'server' ? off.destination : destination] }
  })
  const collector = createCollector({ sources, clock })

  const queued = await collector.delete('u')
  await clock.advance(0)

  expect(queued.map(({ source, queued }) => [source, queued])).toEqual([
    ['web', 1],
    ['app', 1],
    ['server', 0],
  ])
  // Two notifications, not one that arrives twice: they differ in the only field that can.
  const timestamps = [0, 1].map((ms) => new Date(clock.now() + ms).toISOString())
  expect(captured.messages).toEqual(timestamps.map((timestamp) => ({ type: 'delete', userId: 'u', timestamp })))
})

test('the collection service routes calls to every destination of the source', async () => {
  const submitted: unknown[] = []
  const other: CollectorDestination = {
    async submit(submissions) {
      submitted.push(...submissions.map(({ message }) => message))
      return submissions.map(() => ({ queued: true, id: 'stored' }))
    },
  }
  const { client, destination, arrive, captured } = layPath({ others: [other] })

  client.track(CALLS.track)
  await arrive()
  destination.disable()
  client.identify(CALLS.identify)
  await arrive()

  expect(captured.messages).toMatchObject([{ type: 'track', userId: 'u', event: 'E' }])
  expect(submitted).toMatchObject([{ type: 'track' }, { type: 'identify' }])
})

test('a client is bound to the write key of one source', async () => {
  const errors: { readonly status: number | undefined }[] = []
  const onError: ClientOptions['onError'] = (error) => errors.push(error)
  const arrivalBy = (writeKey: string) => arrival('identify', {}, { writeKey, client: { onError } })

  const [own, other, wrong] = [await arrivalBy('key'), await arrivalBy('other key'), await arrivalBy('wrong')]

  expect(own.requests[0]?.headers.authorization).toBe(`Basic ${btoa('key:')}`)
  expect([own, other, wrong].map(({ requests }) => requests[0]?.answer.status)).toEqual([200, 200, 401])
  expect([own, other, wrong].map(({ message }) => message?.type)).toEqual(['identify', undefined, undefined])
  expect(errors).toMatchObject([{ status: 401 }])
})

test('a batch goes after 20 messages, or 5 seconds after the last one went', async () => {
  const { client, clock, requests } = layPath()
  for (let index = 0; index < 21; index++) {
    expect(requests).toHaveLength(Math.floor(index / 20))
    client.track(CALLS.track)
    await clock.advance(0)
  }
  await clock.advance(4_999)
  expect(requests).toHaveLength(1)

  await clock.advance(1)
  expect(requests).toHaveLength(2)

  await clock.advance(3_000)
  client.track(CALLS.track)
  await clock.advance(2_000)
  expect(requests).toHaveLength(3)
})

test('flushAt, size and flushAfterMs say when a batch goes', async () => {
  const sizesOf = async (calls: number, options: Partial<ClientOptions>) => {
    const { client, clock, requests } = layPath({ client: options })
    for (let index = 0; index < calls; index++) client.track(CALLS.track)
    await clock.advance(0)
    return requests.map(({ body }) => JSON.parse(String(body)).batch.length)
  }
  expect(await sizesOf(40, {})).toEqual([20, 20])
  expect(await sizesOf(6, { flushAt: 3 })).toEqual([3, 3])
  expect(await sizesOf(2, { flushAt: 1 })).toEqual([1, 1])
  expect(await sizesOf(2, { size: 1 })).toEqual([1, 1])

  const { client, clock, requests } = layPath({ client: { flushAfterMs: 100 } })
  for (const [waitMs, count] of [
    [99, 0],
    [1, 1],
    [60, 1],
    [40, 2],
  ] as const) {
    client.track(CALLS.track)
    await clock.advance(waitMs)
    expect(requests).toHaveLength(count)
  }
})

test('only a destination for historical data gets a call of the past; without a timestamp its time is that of the server', async () => {
  const past = { timestamp: '2019-05-01T12:00:00+02:00' }
  const destination = { historicalAfterMs: 24 * 3_600_000 }
  for (const type of FIVE) {
    expect((await arrival(type, past)).message).toMatchObject({ type, timestamp: '2019-05-01T10:00:00.000Z' })
    const refused = await arrival(type, past, { destination })
    expect([refused.message, (await refused.destination.health()).skipped.historical]).toEqual([undefined, 1])
    const now = await arrival(type, {}, { destination })
    expect(now.message?.timestamp).toBe(new Date(now.clock.now()).toISOString())
    const recent = new Date(now.clock.now() - 3_600_000).toISOString()
    expect((await arrival(type, { timestamp: recent }, { destination })).message?.timestamp).toBe(recent)
  }

  // The clock of the collector is an hour ahead of every other.
  const { post, captured } = layPath({ collector: { clock: manualClock(Date.UTC(2026, 0, 15, 10, 30)) } })
  await post('track', CALLS.track)
  expect(captured.messages[0]?.timestamp).toBe('2026-01-15T10:30:00.000Z')
})

test('optional fields arrive as they are, and each must be of its type', async () => {
  for (const [type, field, value, wrong] of [
    ['identify', 'traits', { plan: 'pro' }, ['pro']],
    ['identify', 'traits', {}, 'pro'],
    ['track', 'properties', { 'Coupon Code': 'X' }, ['X']],
    ['track', 'properties', {}, 'X'],
    ['page', 'category', 'Docs', 1],
    ['page', 'name', 'Pricing', 1],
    ['page', 'context', { locale: 'de' }, ['de']],
    ['page', 'context', {}, 'de'],
    ['group', 'traits', { 'Employee Count': 12 }, ['large']],
    ['group', 'traits', {}, 'large'],
  ] as const) {
    expect((await arrival(type, { [field]: value })).message).toMatchObject({ [field]: value })
    await expect(arrival(type, { [field]: wrong })).rejects.toThrow(field)
  }
})

test('an anonymousId may stand in the place of a userId, and one of them must be a string', async () => {
  for (const type of ['identify', 'track', 'page', 'group'] as const) {
    const { message } = await arrival(type, { userId: undefined, anonymousId: 'a' })

    expect(message).toMatchObject({ type, anonymousId: 'a' })
    for (const wrong of [{ userId: undefined }, { userId: 7 }])
      await expect(arrival(type, wrong)).rejects.toThrow(/userId/)
    await expect(arrival(type, { anonymousId: 7 })).rejects.toThrow(/anonymousId/)
  }
})

test('all five call types accept integrations, which must be a map', async () => {
  for (const type of FIVE) {
    const other = await arrival(type, { integrations: { All: false, Other: true } })
    const chosen = await arrival(type, { integrations: { All: false, Webhooks: true } })
    expect([other.message, chosen.message?.type]).toEqual([undefined, type])
    await expect(arrival(type, { integrations: ['Webhooks'] })).rejects.toThrow(/integrations/)
  }
})

/** The inspector: what it shows of the parts, how it reads bodies, and its options. */

import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createReceiver, type EndpointHeaders, type Receiver, type SourceRequest } from 'hookline'
import { createCollector } from 'hookline/collector'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination } from 'hookline/sender'
import { manualClock } from 'hookline/testing'
import { expect, it, vi } from 'vitest'
import { throwing } from '../../../test/support/throwing.ts'
import { createExplain } from '../src/endpoint/explanations.ts'
import { createInspector, type Inspector } from '../src/index.ts'
import type { Detail } from '../src/wire.ts'
import { ask, closeLater, endpointOf, get, keptBy, logged, OWN_HEADERS, post, serve } from './support.ts'

const SECRET = 'a secret that no answer has'
const WRITE_KEY = 'a-write-key-that-no-answer-has'

function inspect(receiver: Receiver): Inspector {
  const inspector = createInspector({ receiver })
  closeLater(() => inspector.close())
  return inspector
}

it('what happens at the parts is shown in full; without secrets', async () => {
  const shop = createReceiver({ secret: SECRET, onError: () => {} }).on('*', () => {})
  const webhooks = [{ url: 'http://127.0.0.1:9/' }]
  const orders = createDestination({ webhooks, sharedSecret: SECRET, queue: memoryQueue(), onAttempt() {} })
  const sources = [{ name: 'site', writeKey: WRITE_KEY, destinations: [orders] }]
  const site = createCollector({ sources, onError() {} })
  const inspector = createInspector({ receiver: { shop }, destinations: { orders }, collector: { site } })
  closeLater(() => Promise.all([inspector.close(), shop.close(), orders.close({ graceMs: 0 })]))

  const body = Buffer.from(JSON.stringify({ type: 'track', userId: 'u1', event: 'Order Completed' }))
  const [authorization, cookie] = ['a token of the sender', 'a cookie of the sender']
  const signature = createHmac('sha1', SECRET).update(body).digest('hex')
  await shop.receive(body, { 'x-signature': signature, authorization, cookie })
  await shop.receive(body, { 'x-signature': '0'.repeat(40), authorization, cookie })
  const headers = { 'content-type': 'application/json', authorization: `Basic ${btoa(`${WRITE_KEY}:`)}` }
  const call = { userId: 'u2', event: 'Order Completed', writeKey: WRITE_KEY }
  await ask(site, '/v1/track', { method: 'POST', headers, body: call })

  const answers = await Promise.all([1, 2, 3, 4].map((id) => get(inspector, '/api/message', `id=${id}`)))
  const rows = answers.map(({ body }) => (JSON.parse(body as string) as Detail).row)
  const shown = rows.map(({ part, kind, state }) => `${part} ${kind} ${state}`).sort()
  expect(shown.join()).toBe('orders sent waiting,shop received done,shop received refused,site collected done')
  expect((await get(inspector, '/api/series', 'part=site&minutes=15')).status).toBe(200)
  const explain = (id: number | undefined) => get(inspector, '/api/explanation', `id=${id}`)
  const explanation = await explain(rows.find(({ state }) => state === 'refused')?.id)
  expect(explanation).toMatchObject({ status: 200, body: expect.stringContaining('signature') })
  expect(await explain(rows.find(({ state }) => state === 'done')?.id)).toMatchObject({ status: 404 })
  const all = [...answers, explanation].map(({ body }) => body).join()
  expect(all).toContain('Order Completed')
  for (const each of [SECRET, WRITE_KEY, btoa(`${WRITE_KEY}:`), authorization, cookie]) expect(all).not.toContain(each)
  expect(inspector.forget('u1')).toBe(2)
  for (const { id } of rows.filter(({ part }) => part === 'shop')) {
    expect(await get(inspector, '/api/message', `id=${id}`)).toMatchObject({ status: 404 })
  }
})

it('a signature that is not right is not shown: it may be the secret itself', async () => {
  const secret = '8da1d119209ad36ffc81d33982c03ed48d07541b'
  const receiver = createReceiver({ secret, onError: () => {} })
  const inspector = inspect(receiver)
  await receiver.receive(Buffer.from('{}'), { 'x-signature': secret })
  expect(JSON.stringify(await get(inspector, '/api/message', 'id=1'))).not.toContain(secret)
  expect(JSON.stringify(await get(inspector, '/api/explanation', 'id=1'))).not.toContain(secret)
})

it('a signature is explained with the secrets in force now; without them, what is missing is said', async () => {
  const machine = manualClock()
  const provider = vi.fn<() => Promise<readonly string[]>>(async () => ['the secret'])
  const source = vi.fn((_request: SourceRequest) => 'site')
  const receiver = createReceiver({ secret: { source, secrets: provider } })
  const explainer = createExplain(new Map([['shop', receiver]]), machine)
  const text = JSON.stringify({ type: 'track', userId: 'u1', event: 'A' })
  const signature = createHmac('sha1', 'the old secret').update(`${text}\n`).digest('hex')
  const request = { part: 'shop', path: '/hooks', headers: { 'x-signature': signature } as EndpointHeaders }
  const explain = (more: object = {}, bytes = Buffer.from(text)) => explainer({ ...request, bytes, ...more })
  const tooLarge = Buffer.alloc(512 * 1024 + 1, ' ')
  const unexplained = await explain()
  expect(source).toHaveBeenCalledWith({ path: '/hooks', query: '', headers: request.headers })

  provider.mockResolvedValue(['another one', '', 'a third', 'the old secret'])
  const explained = await explain()
  expect(await explain({ headers: { 'x-signature': [signature] } })).toBe(explained)
  await expect(explain({}, tooLarge)).rejects.toMatchObject({ status: 503 })
  await explain({}, tooLarge.subarray(1))
  provider.mockResolvedValue(['a', 'b', 'c', 'the old secret'])
  expect(await explain()).not.toBe(explained)
  provider.mockResolvedValue([])
  const withoutSecrets = await explain()
  expect(await explain({ part: 'gone' }, tooLarge)).toBe(withoutSecrets)
  expect(new Set([unexplained, explained, withoutSecrets]).size).toBe(3)
  provider.mockRejectedValueOnce(new Error('the vault is sealed'))
  await expect(explain()).rejects.toMatchObject({ status: 503, message: expect.not.stringContaining('vault') })
  provider.mockReturnValue(new Promise(() => {}))
  const late = expect(explain()).rejects.toMatchObject({ status: 503 })
  await machine.advance(4_999)
  expect(machine.timers).toBe(1)
  await machine.advance(1)
  await late
})

it('the setup has what the page shows besides its data', async () => {
  const parts = [{ name: 'shop', kind: 'collector' }] as const
  const keep = { messages: 2_000, bytes: 64_000_000, refused: 200, refusedBytes: 4_000_000 }
  const shared = { access: 'write', now: expect.any(Number), keep }
  const options = { parts, keep, command: 'listen', senders: new Map([['again', {} as never]]) } as const
  const endpoints = [endpointOf({ ...options, address: () => 'http://localhost:1' }), inspect(receiver)]
  const setups = await Promise.all(endpoints.map(async (each) => (await get(each, '/api/setup')).body as string))
  const shownOf = (part: object) => ({ ...shared, parts: [{ ...part, hasQueue: false, hasHistory: false }] })
  const [shop, app] = [shownOf({ name: 'shop', kind: 'collector' }), shownOf({ name: 'receiver', kind: 'receiver' })]
  const more = { command: 'listen', address: 'http://localhost:1', senders: ['again'] }
  expect(setups.map((text) => JSON.parse(text))).toEqual([
    Object.assign(shop, more),
    Object.assign(app, { senders: [] }),
  ])
})

it('what fails is in the log, and answered without what it was', async () => {
  const { log, lines } = logged()
  const detail = throwing('the disk is on fire')
  const endpoint = endpointOf({ log, journal: { ...keptBy(manualClock()).journal, detail } })
  const { status, body } = await get(endpoint, '/api/message', 'id=1')
  expect([status, body]).toEqual([500, expect.not.stringContaining('fire')])
  expect(lines).toHaveLength(1)
})

it('queries that are wrong are refused', async () => {
  const shop = { name: 'shop', kind: 'receiver' } as const
  const inspector = endpointOf({ parts: [shop], explain: async () => '' })
  const series = ['', '&minutes=241', '&minutes=0', '&minutes=1.5'].map((more) => `series?part=shop${more}`)
  const unknown = ['message?id=12345678', 'series?part=other&minutes=5', 'dead-letters?part=shop']
  const wrong = ['message?', 'message?id=1e3', ...series]
  for (const url of [...wrong, ...unknown]) {
    const [path, query] = url.split('?')
    const { status, body } = await get(inspector, `/api/${path}`, query)
    expect([url, status]).toEqual([url, unknown.includes(url) ? 404 : 400])
    expect(JSON.parse(body as string)).toEqual({ error: expect.any(String) })
  }
})

it('a part is not watched any more once the inspector is closed', async () => {
  const remove = vi.fn()
  const observe = vi.fn(() => remove)
  const inspector = createInspector({ receiver: { ...createReceiver({ secret: SECRET }), observe } })
  await inspector.close()
  expect(remove).toHaveBeenCalledTimes(observe.mock.calls.length)
  expect(await ask(inspector, '/api/setup')).toMatchObject({ status: 503 })
})

async function open(contentLength?: number) {
  const machine = manualClock()
  const endpoint = endpointOf({ machine, authorize: () => 'write' })
  const reading = vi.fn()
  const origin = await serve({
    handle: (request) => endpoint.handle({ ...request, readBody: reading.mockImplementation(request.readBody) }),
  })
  const length = contentLength === undefined ? {} : { 'content-length': String(contentLength) }
  const request = httpRequest(`${origin}/api/drop`, {
    method: 'POST',
    headers: { ...(OWN_HEADERS as Record<string, string>), ...length, origin },
  })
  request.on('error', () => {}) // The connection ends while it writes.
  const answered = once(request, 'response') as Promise<[IncomingMessage]>
  return { machine, request, reading, answered, closed: once(request, 'close') }
}

async function expectRefusal(answered: Promise<[IncomingMessage]>, status: number): Promise<void> {
  const [response] = await answered
  expect([response.statusCode, response.headers.connection]).toEqual([status, 'close'])
  response.resume()
}

it('the body of a POST that stops is waited for 10 seconds', async () => {
  const { machine, request, reading, answered, closed } = await open(100)
  request.write('{"part":')
  await vi.waitFor(() => expect(reading).toHaveBeenCalled())
  await machine.advance(10_000)
  await expectRefusal(answered, 503)
  await closed
})

it.each([
  ['is larger than a megabyte is refused, although it never ends', undefined, Buffer.alloc(1_000_001, ' ')],
  ['is announced to be larger is refused before it comes', 1_000_001, undefined],
])('the body of a POST that %s', async (_name, length, sent) => {
  const { request, reading, answered, closed } = await open(length)
  if (sent === undefined) request.flushHeaders()
  else request.write(sent)
  await expectRefusal(answered, 413)
  await closed
  if (sent !== undefined) expect(reading).toHaveBeenCalledWith(1_000_000)
})

it.each(['[1', '[]'])('the body of a POST that is no JSON object is refused: %j', async (body) => {
  expect(await post(endpointOf(), '/api/drop', body)).toMatchObject({ status: 400 })
})

const receiver = createReceiver({ secret: SECRET })
const boundedBy = (keep: object): [string, unknown, RegExp] => {
  return [JSON.stringify(keep), { receiver, keep }, RegExp(`keep.${Object.keys(keep)}`)]
}
it.each<[string, unknown, RegExp]>([
  ['no object', undefined, /options/],
  ['no part', {}, /part/],
  ['a misspelt name', { reciever: receiver }, /`receiver`/],
  ['a part of another kind', { receiver: { shop: {} } }, /`receiver\['shop'\]\.handle`/],
  ['a name twice', { receiver: { a: receiver }, destinations: { a: {} } }, /names/],
  ['a long name', { receiver: { ['x'.repeat(61)]: receiver } }, /names/],
  ['a token beside authorize', { receiver, token: 'x'.repeat(32), authorize: () => false }, /`token`.*`authorize`/],
  ['a short name', { receiver: { '': receiver } }, /names/],
  ['a sender that cannot send', { receiver, senders: { shop: { request() {} } } }, /`senders\['shop'\]\.send`/],
  ['authorize that is none', { receiver, authorize: 'read' }, /`authorize`/],
  ['a clock without timers', { receiver, clock: { now() {}, monotonic() {} } }, /`clock\.setTimeout`/],
  ...[{ messages: 0 }, { messages: 100_001 }, { refused: 0 }, { refused: 100_001 }].map(boundedBy),
  ...[{ bytes: 999_999 }, { refusedBytes: 999_999 }].map(boundedBy),
  ['a misspelt bound', { receiver, keep: { mesages: 5 } }, /`messages`/],
])('an inspector of %s is a TypeError that names the option', (_name, options, text) => {
  expect(() => createInspector(options as never)).toThrow(text)
  expect(() => createInspector(options as never)).toThrow(TypeError)
})

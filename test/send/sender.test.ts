import { describe, expect, it, test } from 'vitest'
import { sign } from '../../src/protocol/signature.ts'
import { createSender } from '../../src/send/create-sender.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import type { Tampering } from '../../src/send/tamper.ts'
import { capture, fixtures, manualClock, type Script } from '../../src/testing.ts'
import { attemptOf, listen, openSender } from './set-up.ts'

const sharedSecret = 'secret'

describe('a request', () => {
  it('is one signed POST to exactly the URL', async () => {
    const endpoint = await listen()
    const url = `${endpoint.url}?tenant=7`
    const sender = openSender({ webhooks: [{ url, headers: { 'X-Team': 'growth' } }], sharedSecret })

    const round = await sender.track({ userId: 'u1', event: 'Order Completed', properties: { total: 12 } })

    const [request, ...others] = endpoint.requests
    const bytes = request?.bytes ?? Buffer.of()
    expect(others).toEqual([])
    expect(request).toMatchObject({ method: 'POST', path: '/webhooks?tenant=7' })
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Hookline/1.0',
      'x-team': 'growth',
      'x-signature': sign(bytes, sharedSecret),
      'content-length': String(bytes.length),
    })
    expect(JSON.parse(String(Buffer.from(bytes)))).toEqual(round.message)
    expect(round).toMatchObject({ ok: true, attempts: [{ ok: true, status: 200, url: `${endpoint.url}?…` }] })
  })

  it('goes to all of five URLs at once, with the same bytes and the headers of each', async () => {
    const endpoint = await listen({ script: [{ delayMs: 50 }, 200] })
    const names = ['a', 'b', 'c', 'd', 'e']
    const webhooks = names.map((name) => ({ url: `${endpoint.url}/${name}`, headers: { 'x-name': name } }))

    const round = await openSender({ webhooks, sharedSecret }).identify({ userId: 'u1', traits: { plan: 'pro' } })

    expect(round.attempts).toMatchObject(webhooks.map(({ url }) => ({ url, status: 200 })))
    const arrived = endpoint.requests.map(({ path, headers }) => [path, headers['x-name']])
    expect(arrived.sort()).toEqual(names.map((name) => [`/webhooks/${name}`, name]))
    expect(new Set(endpoint.requests.map(({ bytes }) => String(bytes))).size).toBe(1)
    expect(new Set(endpoint.requests.map(({ headers }) => headers['x-signature'])).size).toBe(1)
  })
})

const slow = { headers: { 'retry-after': '7' }, body: 'b', delayMs: 250 }
const later = { status: 503, retryAfterMs: 7_000, body: 'b', durationMs: 250 }
it.each<[string, Script, boolean, Partial<Attempt>[]]>([
  ['300 is no success', [300], false, [{ status: 300 }]],
  ['503 is none, and may ask for a delay', [{ status: 503, ...slow }], false, [later]],
  ['299 asks for none', [{ status: 299, ...slow }], true, [{ ok: true, status: 299, body: 'b', durationMs: 250 }]],
  ['a 2xx of any URL is one', [500, 200], true, [{ status: 500 }, { status: 200 }]],
])('an answer: %s', async (_rule, script, ok, expected) => {
  const clock = manualClock()
  const captured = capture({ script, clock })
  const webhooks = script.map((_, index) => ({ url: `http://shop.example/${index}` }))
  const common = { at: new Date(clock.now()), durationMs: 0 }
  const attempts = expected.map((attempt, index) => attemptOf({ ...webhooks[index], ...common, ...attempt }))
  const posting = openSender({ webhooks, dispatcher: captured.dispatcher, clock }).delete({ userId: 'u' })
  await clock.advance(250)
  const round = await posting
  expect(round).toEqual({ ok, message: captured.messages[0], attempts })
  expect('retryAfterMs' in (round.attempts[0] ?? {})).toBe(attempts[0]?.status === 503)
})

describe('request()', () => {
  const webhooks = [{ url: 'http://a.example/' }, { url: 'http://b.example/?q' }]
  const sender = createSender({ webhooks, sharedSecret })
  const message = { ...fixtures.track, messageId: 'm', context: {} }
  const original = sender.request(message)

  it('gives the exact request, to the URL that is asked for', () => {
    expect(original).toMatchObject({ url: 'http://a.example/', method: 'POST', isChunked: false, copies: 1 })
    expect(original.headers['X-Signature']).toBe(sign(original.body, sharedSecret))
    expect(sender.request(message, { webhook: 1 }).url).toBe('http://b.example/?q')
  })

  const parsed = JSON.parse(Buffer.from(original.body).toString())
  const { 'X-Signature': signature = '', ...unsigned } = original.headers
  const another = { ...unsigned, 'X-Signature': expect.stringMatching(`^(?!${signature})[0-9a-f]{40}$`) }
  it.each<[Tampering, object]>([
    ['bad-signature', { headers: another }],
    ['wrong-secret', { headers: another }],
    ['reserialised', { body: new TextEncoder().encode(JSON.stringify(parsed, null, 2)) }],
    ['no-signature', { headers: unsigned }],
    ['truncated', { body: original.body.slice(0, -1) }],
    ['chunked', { isChunked: true }],
    ['repeated', { copies: 2 }],
  ])('%s: else the same request', (tamper, how) => {
    expect(sender.request(message, { tamper })).toEqual({ ...original, ...how })
  })
})

test('a message that is sent in chunks has no length, and the right signature', async () => {
  const endpoint = await listen()
  await openSender({ webhooks: [{ url: endpoint.url }], sharedSecret }).send(fixtures.page, { tamper: 'chunked' })
  const { headers, bytes = Buffer.of() } = endpoint.requests[0] ?? {}
  expect(headers).toMatchObject({ 'transfer-encoding': 'chunked', 'x-signature': sign(bytes, sharedSecret) })
  expect(headers).not.toHaveProperty('content-length')
})

test('a message that is sent repeatedly has an attempt for each URL and time', async () => {
  const { dispatcher } = capture()
  const webhooks = ['http://a.example/', 'http://b.example/'].map((url) => ({ url }))
  const { attempts } = await openSender({ webhooks, dispatcher }).send(fixtures.page, { tamper: 'repeated' })
  expect(attempts).toMatchObject([...webhooks, ...webhooks])
})

test('a dispatcher that throws is an attempt that failed', async () => {
  const dispatcher = { dispatch: () => expect.fail('broken') }
  const sender = openSender({ webhooks: [{ url: 'http://shop.example/' }], dispatcher })
  const { attempts } = await sender.delete({ userId: 'u' })
  const reason = expect.stringContaining('broken')
  const times = { at: expect.any(Date), durationMs: expect.any(Number) }
  expect(attempts).toEqual([attemptOf({ url: 'http://shop.example/', error: 'reset', reason, ...times })])
})

test('the timeout of an attempt begins when it is posted, not while it waits', async () => {
  const clock = manualClock()
  const { dispatcher, requests } = capture({ script: ['hang'] })
  const sender = openSender({ webhooks: [{ url: 'http://shop.example/' }], dispatcher, clock })

  const rounds = Promise.all(Array.from({ length: 129 }, () => sender.delete({ userId: 'u' })))
  await clock.advance(0)
  expect(requests).toHaveLength(128)
  await clock.advance(5_000)
  expect(requests).toHaveLength(129)
  await clock.advance(5_000)

  const starts = (await rounds).map(({ attempts }) => attempts[0]?.at.getTime())
  expect(new Set(starts).size).toBe(2)
})

test('close() waits for rounds under way and refuses later ones', async () => {
  const endpoint = await listen({ script: [200, { status: 200, delayMs: 50 }] })
  const sender = createSender({ webhooks: [{ url: endpoint.url }] })
  const rounds = [1, 2].map(() => sender.delete({ userId: 'u' }))
  await sender.close()
  expect(await Promise.all(rounds)).toMatchObject([{ ok: true }, { ok: true }])
  await expect(sender.delete({ userId: 'u' })).rejects.toMatchObject({ code: 'shutting_down' })
  await sender.close()
})

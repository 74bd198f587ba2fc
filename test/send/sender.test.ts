import { createHmac } from 'node:crypto'
import { Agent, MockAgent } from 'undici'
import { describe, expect, it, onTestFinished, test } from 'vitest'
import { createSender } from '../../src/send/create-sender.ts'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import {
  capture,
  type EndpointOptions,
  fixtures,
  manualClock,
  type ScriptedEndpoint,
  startEndpoint,
} from '../../src/testing.ts'

const sharedSecret = 'secret'

async function listen(options?: EndpointOptions): Promise<ScriptedEndpoint> {
  const endpoint = await startEndpoint(options)
  onTestFinished(() => endpoint.close())
  return endpoint
}

function open(options: SenderOptions) {
  const sender = createSender(options)
  onTestFinished(() => sender.close())
  return sender
}

describe('a request', () => {
  it('is one signed POST to exactly the URL', async () => {
    const endpoint = await listen()
    const sender = open({
      webhooks: [{ url: `${endpoint.url}?tenant=7`, headers: { 'X-Team': 'growth' } }],
      sharedSecret,
    })

    const round = await sender.track({ userId: 'u1', event: 'Order Completed', properties: { total: 12 } })

    expect(endpoint.requests).toHaveLength(1)
    const [request] = endpoint.requests
    expect(request).toMatchObject({ method: 'POST', path: '/webhooks?tenant=7' })
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Hookline/1.0',
      'x-team': 'growth',
      'x-signature': createHmac('sha1', sharedSecret)
        .update(request?.bytes ?? '')
        .digest('hex'),
      'content-length': String(request?.bytes.length),
    })
    expect(JSON.parse(String(Buffer.from(request?.bytes ?? [])))).toEqual(round.message)
    expect(round).toMatchObject({ ok: true, attempts: [{ ok: true, status: 200, url: `${endpoint.url}?…` }] })
  })

  it('goes to all of five URLs at once, with the same bytes and the headers of each', async () => {
    const endpoint = await listen()
    const names = ['a', 'b', 'c', 'd', 'e']
    const webhooks = names.map((name) => ({ url: `${endpoint.url}/${name}`, headers: { 'x-name': name } }))
    const round = await open({ webhooks, sharedSecret }).identify({ userId: 'u1', traits: { plan: 'pro' } })

    expect(round.attempts.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(endpoint.requests.map(({ path, headers }) => [path, headers['x-name']]).sort()).toEqual(
      names.map((name) => [`/webhooks/${name}`, name]),
    )
    expect(new Set(endpoint.requests.map(({ bytes }) => String(bytes))).size).toBe(1)
    expect(new Set(endpoint.requests.map(({ headers }) => headers['x-signature'])).size).toBe(1)
  })

  it('uses a connection that is open already', async () => {
    const endpoint = await listen()
    const sender = open({ webhooks: [{ url: endpoint.url }] })
    for (let i = 0; i < 5; i++) await sender.delete({ userId: 'u1' })

    expect(endpoint.requests).toHaveLength(5)
    expect(endpoint.connections).toBeLessThan(3)
  })
})

describe('a message', () => {
  const sender = createSender({ webhooks: [{ url: 'http://localhost/' }], sharedSecret })
  const bodyOf = (message: object) => JSON.parse(String(Buffer.from(sender.request(message as never).body)))

  it.each(Object.entries(fixtures))('%s: is completed and otherwise as it was given', (type, fixture) => {
    const body = bodyOf(fixture)
    if (type === 'delete') {
      expect(body).toEqual(fixture)
    } else {
      const { previousId: _, ...expected } = fixture as Record<string, unknown>
      expect(body).toEqual({ context: {}, ...expected, messageId: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    }
  })

  it('of an alias spells its ids with spaces', () => {
    const alias = { type: 'alias', userId: 'new', previousId: 'old' }
    expect(bodyOf(alias)).toMatchObject({ userId: 'new', 'User ID': 'new', 'Previous ID': 'old' })
    expect(bodyOf(alias)).not.toHaveProperty('previousId')
  })

  it.each([
    ['no object', null, /^`message.type` must be one of 'page', .*'delete'\. Got undefined\. Pass one of 'page', /],
    [
      'an unknown type',
      { type: 'order' },
      /^`message.type` must be one of 'page', .*\. Got 'order'\. Pass one of 'page'/,
    ],
    ['a track without an event', { type: 'track', userId: 'u' }, /^track: .*event.* must be a .*string/],
    ['no user', { type: 'page' }, /^page: .*userId.* must be a .*string.*anonymousId/],
    ['a group without its id', { type: 'group', userId: 'u' }, /^group: .*groupId.* must be/],
    ['an alias without the old id', { type: 'alias', userId: 'u' }, /^alias: .*Previous ID.* must be/],
    ['a delete without a user', { type: 'delete' }, /^delete: .*userId.* must be/],
    ['an invalid timestamp', { type: 'page', userId: 'u', timestamp: 'now' }, /^page: .*timestamp.* must be a Date/],
    [
      'traits that are no object',
      { type: 'identify', userId: 'u', traits: [] },
      /^identify: .*traits.* must be an object/,
    ],
    ['a BigInt', { type: 'track', userId: 'u', event: 'e', properties: { n: 1n } }, /^track: .* JSON: .*BigInt/],
    [
      'a Date for traits',
      { type: 'identify', userId: 'u', traits: new Date(0) },
      /^identify: .*traits.* must be a plain object/,
    ],
    ['its own toJSON', { type: 'page', userId: 'u', toJSON: () => 5 }, /^page: .*toJSON/],
  ])('%s is a TypeError of the developer', async (_case, message, expected) => {
    expect(() => sender.request(message as never)).toThrow(TypeError)
    expect(() => sender.request(message as never)).toThrow(expected)
    await expect(sender.send(message as never)).rejects.toThrow(TypeError)
  })

  it.each([
    ['send', () => sender.send(fixtures.page, { tampr: 'truncated' } as never)],
    ['request', async () => sender.request(fixtures.page, { webook: 1 } as never)],
  ])('%s: an option that does not exist is a TypeError', async (_name, call) => {
    await expect(call()).rejects.toThrow(/^`(tampr|webook)` is not an option/)
  })

  it('of a method is checked as well', async () => {
    await expect(sender.track(undefined as never)).rejects.toThrow(
      "`track: call` must be an object. Got undefined. Pass fields, for example { userId: 'u1' }.",
    )
    await expect(sender.group({ userId: 'u' } as never)).rejects.toThrow(/^group: .*groupId.* must be/)
  })
})

describe('an answer', () => {
  it.each([300, 304, 400, 404, 500, 503])('%i is not a success', async (status) => {
    const endpoint = await listen({ script: [status] })
    const round = await open({ webhooks: [{ url: endpoint.url }] }).delete({ userId: 'u' })

    expect(round).toMatchObject({ ok: false, attempts: [{ ok: false, status }] })
  })

  it('with 200 has no retryAfterMs, even with Retry-After', async () => {
    const endpoint = await listen({ script: [{ status: 200, headers: { 'retry-after': '7' } }] })
    const round = await open({ webhooks: [{ url: endpoint.url }] }).delete({ userId: 'u' })

    expect(round.attempts[0]).not.toHaveProperty('retryAfterMs')
  })

  it('of 2xx from any URL makes the round a success', async () => {
    const bad = await listen({ script: [500] })
    const good = await listen()
    const round = await open({ webhooks: [{ url: bad.url }, { url: good.url }] }).delete({ userId: 'u' })

    expect(round).toMatchObject({ ok: true, attempts: [{ status: 500 }, { status: 200 }] })
  })

  it.each([
    ['7', 7_000],
    ['0', 0],
    ['soon', undefined],
  ])('with Retry-After: %s', async (value, retryAfterMs) => {
    const endpoint = await listen({ script: [{ status: 503, headers: { 'retry-after': value } }] })
    const round = await open({ webhooks: [{ url: endpoint.url }] }).delete({ userId: 'u' })

    expect(round.attempts[0]?.retryAfterMs).toBe(retryAfterMs)
  })
})

describe('request(), with tampering', () => {
  const sender = createSender({
    webhooks: [{ url: 'http://a.example/' }, { url: 'http://b.example/?q' }],
    sharedSecret,
  })
  const plain = (body: Uint8Array) => createHmac('sha1', sharedSecret).update(body).digest('hex')
  const message = { ...fixtures.track, messageId: 'm', context: {} }
  const original = sender.request(message)

  it('gives the exact request without it', () => {
    expect(original).toMatchObject({ url: 'http://a.example/', method: 'POST', isChunked: false, copies: 1 })
    expect(original.headers['X-Signature']).toBe(plain(original.body))
    expect(sender.request(message, { webhook: 1 }).url).toBe('http://b.example/?q')
    expect(() => sender.request(message, { webhook: 2 })).toThrow(
      '`webhook` must be a whole number from 0 to 1. Got 2.',
    )
  })

  it.each(['bad-signature', 'wrong-secret'] as const)('%s: another signature of the right form', (tamper) => {
    const { headers, body } = sender.request(message, { tamper })
    expect(body).toEqual(original.body)
    expect(headers['X-Signature']).toMatch(/^[0-9a-f]{40}$/)
    expect(headers['X-Signature']).not.toBe(plain(body))
  })

  it('no-signature: no header', () => {
    expect(sender.request(message, { tamper: 'no-signature' }).headers).not.toHaveProperty('X-Signature')
  })

  it('truncated: a byte less under the same signature', () => {
    const { headers, body } = sender.request(message, { tamper: 'truncated' })
    expect(body).toEqual(original.body.slice(0, -1))
    expect(headers).toEqual(original.headers)
  })

  it('reserialised: the same JSON in other bytes under the same signature', () => {
    const { headers, body } = sender.request(message, { tamper: 'reserialised' })
    expect(JSON.parse(String(Buffer.from(body)))).toEqual(JSON.parse(String(Buffer.from(original.body))))
    expect(body).not.toEqual(original.body)
    expect(headers).toEqual(original.headers)
  })

  it.each(['chunked', 'repeated'] as const)('%s: the same request', (tamper) => {
    expect(sender.request(message, { tamper })).toEqual({
      ...original,
      isChunked: tamper === 'chunked',
      copies: tamper === 'repeated' ? 2 : 1,
    })
  })

  it('refuses an unknown way, and signatures without a shared secret', () => {
    expect(() => sender.request(message, { tamper: 'harder' as never })).toThrow(
      /^`tamper` must be one of 'bad-signature', .*\. Got 'harder'\. Pass/,
    )
    const unsigned = createSender({ webhooks: [{ url: 'http://a.example/' }] })
    expect(() => unsigned.request(message, { tamper: 'bad-signature' })).toThrow(
      '`tamper` needs a signature to change. Got a sender without a secret. Set `sharedSecret`.',
    )
  })
})

describe('send(), with tampering', () => {
  it('chunked: sends the body without its length', async () => {
    const endpoint = await listen()
    await open({ webhooks: [{ url: endpoint.url }], sharedSecret }).send(fixtures.page, { tamper: 'chunked' })

    const [request] = endpoint.requests
    expect(request?.headers).toMatchObject({ 'transfer-encoding': 'chunked' })
    expect(request?.headers).not.toHaveProperty('content-length')
    expect(request?.headers['x-signature']).toBe(
      createHmac('sha1', sharedSecret)
        .update(request?.bytes ?? '')
        .digest('hex'),
    )
  })

  it('repeated: sends the same bytes twice', async () => {
    const endpoint = await listen()
    const round = await open({ webhooks: [{ url: endpoint.url }], sharedSecret }).send(fixtures.page, {
      tamper: 'repeated',
    })

    expect(round.attempts).toHaveLength(2)
    expect(endpoint.requests[0]?.bytes).toEqual(endpoint.requests[1]?.bytes)
  })

  it('truncated: what the endpoint reads does not fit its signature', async () => {
    const endpoint = await listen()
    await open({ webhooks: [{ url: endpoint.url }], sharedSecret }).send(fixtures.page, { tamper: 'truncated' })

    const [request] = endpoint.requests
    expect(request?.headers['x-signature']).not.toBe(
      createHmac('sha1', sharedSecret)
        .update(request?.bytes ?? '')
        .digest('hex'),
    )
  })
})

test('a dispatcher that throws is an attempt that failed', async () => {
  const dispatcher = {
    dispatch() {
      throw new Error('broken')
    },
  }
  const round = await open({ webhooks: [{ url: 'http://shop.example/' }], dispatcher }).delete({ userId: 'u' })

  expect(round).toMatchObject({
    ok: false,
    attempts: [{ error: 'reset', reason: expect.stringContaining('Got broken. ') }],
  })
})

describe('options', () => {
  const { ca } = createCertificate('private_ca')
  const webhooks = [{ url: 'http://localhost/' }]

  it.each([
    ['nothing', undefined, '`createSender: options` must be an object. Got undefined.'],
    [
      'an unknown name',
      { webhooks, secret: 's' },
      '`secret` is not an option. Did you mean `sharedSecret`? Valid options: webhooks, sharedSecret',
    ],
    ['no webhooks', {}, '`webhooks` must be a list of 1 to 5 entries. Got undefined. Pass URLs, for example [{ url:'],
    [
      'an unset secret',
      { webhooks, sharedSecret: undefined },
      '`sharedSecret` must be a non-empty string. Got undefined. Pass the secret, or leave the option out to send unsigned. If it is not set yet when this module is loaded, call this function later, at the first use.',
    ],
    [
      'an empty secret',
      { webhooks, sharedSecret: '' },
      '`sharedSecret` must be a non-empty string. Got an empty string.',
    ],
    [
      'a user agent with a version',
      { webhooks, userAgent: 'Acme/2' },
      "`userAgent` must be a product token. Got 'Acme/2'. Pass a name without a version, for example 'Hookline'.",
    ],
    [
      'a longer time than the specification gives',
      { webhooks, timeoutMs: 5_001 },
      '`timeoutMs` must be a whole number from 1 to 5000. Got 5001.',
    ],
    ['no time', { webhooks, timeoutMs: 0 }, '`timeoutMs` must be'],
    ['half a millisecond', { webhooks, timeoutMs: 0.5 }, '`timeoutMs` must be'],
    [
      'a guard that is no boolean',
      { webhooks, allowPrivateAddresses: 'no' },
      "`allowPrivateAddresses` must be a boolean. Got 'no'.",
    ],
    [
      'no dispatcher',
      { webhooks, dispatcher: {} },
      '`dispatcher` must be a Dispatcher. Got an object. Pass one of undici, for',
    ],
    [
      'a dispatcher and ca',
      { webhooks, dispatcher: new Agent(), ca },
      /^`dispatcher` opens its own connections.*\. Got dispatcher and ca\. Remove one of them\.$/,
    ],
    [
      'a dispatcher and a guard',
      { webhooks, dispatcher: new Agent(), allowPrivateAddresses: false },
      /^`dispatcher` opens its own connections.*\. Got dispatcher and allowPrivateAddresses: false\. Remove/,
    ],
    ['no clock', { webhooks, clock: {} }, '`clock.now` must be a function'],
    [
      'what is no certificate',
      { webhooks, ca: [ca, 'garbage'] },
      '`ca` must be PEM certificates that can be read. Got a list. Pass the content of a PEM file, for example await',
    ],
  ])('%s is a TypeError', (_case, options, message: string | RegExp) => {
    expect(() => createSender(options as never)).toThrow(TypeError)
    expect(() => createSender(options as never)).toThrow(message)
  })

  it('dispatcher: any dispatcher of undici sends the requests', async () => {
    const agent = new MockAgent()
    agent.disableNetConnect()
    agent.get('http://shop.example').intercept({ path: '/hooks?a=1', method: 'POST' }).reply(202, 'thanks')
    const sender = open({ webhooks: [{ url: 'http://shop.example/hooks?a=1' }], dispatcher: agent })

    expect(await sender.delete({ userId: 'u' })).toMatchObject({
      ok: true,
      attempts: [{ status: 202, body: 'thanks' }],
    })
    expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: false })
  })
})

test('thousands at once: at most 128 connections, and each is delivered', async () => {
  const endpoint = await listen()
  const sender = open({ webhooks: [{ url: endpoint.url }], clock: manualClock() })
  const rounds = await Promise.all(Array.from({ length: 3_000 }, () => sender.delete({ userId: 'u' })))

  expect(rounds.filter(({ ok }) => !ok)).toEqual([])
  expect(endpoint.connections).toBeLessThanOrEqual(128)
}, 30_000)

test('the timeout of an attempt begins when it is posted, not while it waits', async () => {
  const clock = manualClock()
  const captured = capture({ script: ['hang'] })
  const sender = createSender({ webhooks: [{ url: 'http://shop.example/' }], dispatcher: captured.dispatcher, clock })
  const rounds = Promise.all(Array.from({ length: 129 }, () => sender.delete({ userId: 'u' })))
  await clock.advance(0)
  expect(captured.requests).toHaveLength(128)
  await clock.advance(5_000)
  expect(captured.requests).toHaveLength(129)
  await clock.advance(5_000)

  const starts = (await rounds).map(({ attempts }) => attempts[0]?.at.getTime())
  expect(new Set(starts).size).toBe(2)
  await sender.close()
})

test('close() waits for rounds under way and refuses later ones', async () => {
  const endpoint = await listen({ script: [200, { status: 200, delayMs: 50 }] })
  const sender = createSender({ webhooks: [{ url: endpoint.url }] })
  const round = sender.delete({ userId: 'u' })
  const slow = sender.delete({ userId: 'u' })
  await sender.close()

  expect(await round).toMatchObject({ ok: true })
  expect(await slow).toMatchObject({ ok: true })
  await expect(sender.delete({ userId: 'u' })).rejects.toMatchObject({ code: 'shutting_down' })
  await sender.close()
})

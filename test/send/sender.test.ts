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

  it.each([
    ['no object', null, '`message.type`'],
    ['an unknown type', { type: 'order' }, '`message.type`'],
    ['a track without an event', { type: 'track', userId: 'u' }, /^track: .*event.* must be a .*string/],
    ['an invalid timestamp', { type: 'page', userId: 'u', timestamp: 'now' }, /^page: .*timestamp.* must be a Date/],
    ['a BigInt', { type: 'track', userId: 'u', event: 'e', properties: { n: 1n } }, /^track: .* JSON: .*BigInt/],
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
    await expect(call()).rejects.toThrow(/`(tampr|webook)`/)
  })

  it('of a method is checked as well', async () => {
    await expect(sender.track(undefined as never)).rejects.toThrow('`track: call`')
    await expect(sender.group({ userId: 'u' } as never)).rejects.toThrow(/^group: .*groupId.* must be/)
  })
})

describe('an answer', () => {
  it.each([304, 404, 503])('%i is not a success', async (status) => {
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
    expect(() => sender.request(message, { webhook: 2 })).toThrow('`webhook`')
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
    expect(() => sender.request(message, { tamper: 'harder' as never })).toThrow('`tamper`')
    const unsigned = createSender({ webhooks: [{ url: 'http://a.example/' }] })
    expect(() => unsigned.request(message, { tamper: 'bad-signature' })).toThrow('`tamper`')
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
    ['nothing', undefined, '`createSender: options`'],
    ['an unknown name', { webhooks, secret: 's' }, '`secret`'],
    ['no webhooks', {}, '`webhooks`'],
    ['an empty secret', { webhooks, sharedSecret: '' }, '`sharedSecret`'],
    ['a user agent with a version', { webhooks, userAgent: 'Acme/2' }, '`userAgent`'],
    ['a longer time than the specification gives', { webhooks, timeoutMs: 5_001 }, '`timeoutMs`'],
    ['a guard that is no boolean', { webhooks, allowPrivateAddresses: 'no' }, '`allowPrivateAddresses`'],
    ['no dispatcher', { webhooks, dispatcher: {} }, '`dispatcher`'],
    ['a dispatcher and ca', { webhooks, dispatcher: new Agent(), ca }, '`dispatcher`'],
    ['a dispatcher and a guard', { webhooks, dispatcher: new Agent(), allowPrivateAddresses: false }, '`dispatcher`'],
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

test('hundreds at once: at most 128 connections, and each is delivered', async () => {
  const endpoint = await listen()
  const sender = open({ webhooks: [{ url: endpoint.url }], clock: manualClock() })
  const rounds = await Promise.all(Array.from({ length: 600 }, () => sender.delete({ userId: 'u' })))

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

import { createHash } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { type Delivery, HooklineError } from '../../src/index.ts'
import { idOfDigest, idOfKey } from '../../src/protocol/id.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { deliver, hostRequest, secret, setUp, watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const { body, headers } = signedRequest(JSON.stringify(fixtures.track), secret)
const bytes = Buffer.from(body)

describe('receive', () => {
  it.each(Object.values(fixtures))('handles a $type and gives an answer that any host can send', async (fixture) => {
    const { receiver } = setUp()
    const seen: unknown[] = []
    receiver.on(fixture.type, (message) => seen.push(message))
    const received = await deliver(receiver, fixture)
    expect(received).toMatchObject({ ok: true, status: 200, body: '{"ok":true}', message: fixture })
    expect(seen).toEqual([fixture])
  })

  it.each([
    ['an object as node:http gives it', headers],
    ['an object with names in any case', { 'X-Signature': headers['x-signature'] }],
    ['web Headers', new Headers(headers)],
    ['a Map', new Map([['X-SIGNATURE', headers['x-signature']]])],
    ['a list of pairs', [['X-Signature', headers['x-signature']]] as [string, string][]],
  ])('takes headers as %s', async (_form, given) => {
    const { receiver } = setUp()
    expect(await receiver.receive(bytes, given, { query: '' })).toMatchObject({ ok: true })
  })

  it('takes a signature that is repeated for none, in whatever form', async () => {
    const { receiver } = setUp()
    const [first, second] = [['x-signature', 'junk'] as const, ['X-Signature', headers['x-signature']] as const]
    const repeated = [[first, second], Object.fromEntries([first, second]), { 'x-signature': [second[1], second[1]] }]
    for (const given of repeated) {
      expect(await receiver.receive(bytes, given)).toMatchObject({ error: { code: 'signature_malformed' } })
    }
  })

  it('answers an error without a word on its cause', async () => {
    const { receiver, errors } = setUp()
    receiver.on('track', throwing('db password is hunter2'))
    const received = await deliver(receiver, fixtures.track)
    expect(received).toMatchObject({ ok: false, status: 500, error: errors[0] })
    expect(JSON.parse(received.body)).toEqual({ status: 500, code: 'handler_failed', detail: expect.any(String) })
    expect(received.body).not.toContain('hunter2')
  })

  it('refuses a body over the limit', async () => {
    const receiveUpTo = (limit: number) => setUp({ limit }).receiver.receive(bytes, headers)
    expect(await receiveUpTo(bytes.length - 1)).toMatchObject({ ok: false, error: { code: 'body_too_large' } })
    expect(await receiveUpTo(bytes.length)).toMatchObject({ ok: true })
  })
})

describe('delivery', () => {
  async function deliveryOf(options: Parameters<typeof setUp>[0] = {}): Promise<Delivery> {
    const { receiver } = setUp(options)
    const received = await receiver.receive(bytes, headers)
    if (!received.ok) throw received.error
    return received.delivery
  }

  it('says how the message arrived', async () => {
    const delivery = await deliveryOf()
    expect(delivery).toMatchObject({ bytes, headers, bodySource: 'argument', verified: 'signature', secretIndex: 0 })
    expect(delivery.source).toBeUndefined()
    expect(delivery.id).toBe(idOfDigest(headers['x-signature']))
    expect(delivery.receivedAt).toEqual(new Date('2026-01-15T09:30:00Z'))
    expect(delivery.signal.aborted).toBe(false)
    expect(delivery.signal).toBe(delivery.signal)
  })

  it('is written to JSON with its body as text, and without headers', async () => {
    expect(JSON.parse(JSON.stringify(await deliveryOf()))).toEqual({
      id: idOfDigest(headers['x-signature']),
      method: 'POST',
      receivedAt: '2026-01-15T09:30:00.000Z',
      verified: 'signature',
      secretIndex: 0,
      bodySource: 'argument',
      bytes: bytes.toString(),
    })
  })

  it('is known by its bytes when unsigned', async () => {
    const delivery = await deliveryOf({ allowUnsigned: true })
    expect(delivery).toMatchObject({ verified: false, secretIndex: undefined })
    expect(delivery.id).toBe(idOfKey(`unsigned ${createHash('sha256').update(bytes).digest('hex')}`))
  })

  it('fires its signal at the deadline, also for who looks only then, unless it has been answered', async () => {
    const { receiver, clock } = setUp({ deadlineMs: 100 })
    const deliveries: Delivery[] = []
    receiver.on('*', async ({ type }, delivery) => {
      deliveries.push(delivery)
      if (type !== 'group') await new Promise(() => {})
    })
    const all = [fixtures.track, fixtures.page, fixtures.group].map((message) => deliver(receiver, message))
    await clock.advance(99)
    expect(deliveries[0]?.signal.aborted).toBe(false)
    await clock.advance(1)
    await Promise.all(all)
    const late = { code: 'handler_timeout' }
    expect(deliveries.map(({ signal }) => signal.reason)).toMatchObject([late, late, undefined]) // One was answered before.
  })
})

describe('onRejected', () => {
  it('receives the bytes of an authentic message that is unusable, before the answer', async () => {
    const order: unknown[] = []
    const { receiver } = setUp({
      secret: { source: ({ path, query }) => `${path}?${query}`, secrets: () => secret },
      onRejected: async (error, message) => {
        await new Promise((resolve) => setImmediate(resolve))
        order.push(error.code, error.path, message)
      },
    })
    const { bytes, headers } = signedRequest('{"type":"track","userId":"u"}', secret)
    const received = await receiver.receive(bytes, headers, { path: '/hooks', query: 'a=1' })
    order.push(received.status)
    const message = { bytes, headers, path: '/hooks', source: '/hooks?a=1' }
    expect(order).toEqual(['message_invalid', 'event', message, 422])
  })

  it('sees nothing that is not authentic, or that will be sent again', async () => {
    const onRejected = vi.fn()
    const failing = setUp({ onRejected }).receiver.on('*', () => Promise.reject(new Error('down')))
    await deliver(setUp({ onRejected }).receiver, '{', 'another secret')
    await deliver(setUp({ onRejected, allowUnsigned: true }).receiver, '{')
    await deliver(failing, fixtures.track)
    expect(onRejected).not.toHaveBeenCalled()
  })

  it('that fails makes the answer 500, so that the sender retries', async () => {
    const { receiver, errors } = setUp({ onRejected: () => Promise.reject(new Error('disk full')) })
    expect(await deliver(receiver, '{}')).toMatchObject({ status: 500, error: { code: 'handler_failed' } })
    expect(errors[0]?.cause).toEqual(new Error('disk full'))
  })
})

it('onRejected that fails after the answer is reported', async () => {
  const held = Promise.withResolvers<void>()
  const { receiver, errors, clock } = setUp({ onRejected: () => held.promise })
  const answered = deliver(receiver, '{}')
  await clock.advance(4_500)
  expect(await answered).toMatchObject({ status: 503, error: { code: 'handler_timeout' } })
  held.reject(new Error('disk full'))
  await clock.advance(0)
  expect(errors).toMatchObject([{ code: 'handler_timeout' }, { code: 'handler_failed', cause: new Error('disk full') }])
})

describe('onError', () => {
  it('sees the error and the headers of the request, and no body', async () => {
    const { receiver, errors, failed } = setUp()
    await receiver.receive(bytes, { 'x-signature': 'junk' })
    expect(errors[0]).toBeInstanceOf(HooklineError)
    expect(failed).toEqual([{ headers: { 'x-signature': 'junk' }, remoteAddress: undefined }])
  })

  it('that throws what cannot be shown: the answer stands, and the process emits a warning', async () => {
    const warn = watchWarnings()
    const onError = () => {
      throw Object.create(null)
    }
    expect(await deliver(setUp({ onError }).receiver, '{}')).toMatchObject({ status: 422 })
    const warning = { code: 'HOOKLINE_ON_ERROR', detail: 'a thrown object' }
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.any(String), warning)
  })
})

it('a body that a parser made and that is serialised again is warned about once', async () => {
  const warn = watchWarnings()
  const { receiver } = setUp()
  receiver.on('*', () => {})
  const request = hostRequest({ readBody: () => ({ bytes, source: 'reserialised' }) })
  for (const _ of [1, 2]) expect(await receiver.handle(request)).toMatchObject({ status: 200 })
  expect(warn).toHaveBeenCalledOnce()
  expect(warn).toHaveBeenCalledWith(expect.any(String), { code: 'HOOKLINE_RESERIALISED' })
})

describe('a signature that does not match, of a body that a parser read before', () => {
  const text = Buffer.from('{"name":"\ufffd"}')
  const length = (of: Uint8Array) => ({ 'content-length': `${of.length}` })

  it.each([
    ['is serialised again', 'reserialised', bytes, length(bytes), 500, 'body_consumed'],
    ['is text of which nothing can be lost', 'body-text', bytes, length(bytes), 401, 'signature_mismatch'],
    ['is text of which nothing can be lost', 'rawBody-text', bytes, length(bytes), 401, 'signature_mismatch'],
    ['is text of another length', 'body-text', bytes, { 'content-length': '9999' }, 500, 'body_consumed'],
    ['is text of unknown length', 'body-text', bytes, {}, 500, 'body_consumed'],
    ['is text that was no UTF-8', 'rawBody-text', text, length(text), 500, 'body_consumed'],
    ['is a Buffer', 'rawBody', bytes, {}, 401, 'signature_mismatch'],
  ] as const)('and %s (%s)', async (_what, source, given, sent, status, code) => {
    const { receiver } = setUp({ secret: 'another' })
    watchWarnings()
    const received = await receiver.handle(
      hostRequest({ headers: { ...headers, ...sent }, readBody: () => ({ bytes: given, source }) }),
    )
    expect(received).toMatchObject({ ok: false, status, error: { code } })
  })
})

it('close waits for what is under way, and requests are answered 503 from then on', async () => {
  const { receiver } = setUp()
  const held = Promise.withResolvers<void>()
  receiver.on('track', () => held.promise)
  const order: string[] = []
  const underWay = deliver(receiver, fixtures.track).then(({ status }) => order.push(`answered ${status}`))
  const closed = [receiver.close(), receiver.close()].map((closing) => closing.then(() => order.push('closed')))
  const refused = await deliver(receiver, fixtures.page)
  expect(refused).toMatchObject({ status: 503, error: { code: 'shutting_down' } })
  held.resolve()
  await Promise.all([underWay, ...closed])
  expect(order).toEqual(['answered 200', 'closed', 'closed'])
})

/** The contract of an adapter: whatever the framework and whatever ran before, a request reaches the endpoint as it was sent, and its answer the sender. */

import process from 'node:process'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { BodySource } from '../../src/host/body.ts'
import type { EndpointAnswer, EndpointRequest } from '../../src/host/endpoint.ts'
import type { HooklineError, HooklineErrorCode } from '../../src/protocol/error.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { Delivery } from '../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { hmac } from '../support/hmac.ts'
import type { Before, Host, Running } from '../support/hosts.ts'
import { throwing } from '../support/throwing.ts'
import { until } from '../support/until.ts'
import type { Reply, Wire } from '../support/wire.ts'

export const secret = 'a shared secret'
const track = JSON.stringify(fixtures.track)

/** A request signed according to the specification, by an independent implementation. */
export function signed(body: string | Uint8Array, headers: Wire['headers'] = {}, wire: Partial<Wire> = {}): Wire {
  const bytes = Buffer.from(body)
  return {
    headers: { 'content-type': 'application/json', 'x-signature': hmac(bytes, secret), ...headers },
    chunks: bytes.length === 0 ? [] : [bytes],
    ...wire,
  }
}

/** 200, or the code of the error. */
type Outcome = 200 | HooklineErrorCode

/** The bytes themselves; text that was decoded and is encoded again; or an object that was parsed and is serialised again. */
type Fidelity = 'exact' | 'text' | 'json'

const FOUND: Readonly<Record<Before, readonly [Fidelity, BodySource]>> = {
  nothing: ['exact', 'stream'],
  raw: ['exact', 'body'],
  rawBody: ['exact', 'rawBody'],
  text: ['text', 'body-text'],
  'rawBody-text': ['text', 'rawBody-text'],
  json: ['json', 'reserialised'],
}

interface Condition {
  readonly wire: Wire
  readonly options?: Partial<ReceiverOptions>
  readonly outcome: Outcome | { readonly [F in Fidelity]?: Outcome }
  /** Undefined for every parser. */
  readonly befores?: readonly Before[]
}

const [good, length] = [hmac(Buffer.from(track), secret), track.length]
const split = [...Buffer.from(track)].map((byte) => Uint8Array.of(byte))
const [isLossy, notJson] = ['body_consumed', 'body_not_json'] as const

/** What may be special about the bytes, the framing and the headers of a request, with its outcome by how exact the body is when it is found. */
const conditions: Readonly<Record<string, Condition>> = {
  'numbers and spaces that JSON can write otherwise': {
    wire: signed('{ "type": "track", "userId": "u", "event": "e", "properties": { "total": 39.0 } }\n'),
    outcome: { exact: 200, text: 200, json: isLossy },
  },
  'a byte order mark': { wire: signed(`\ufeff${track}`), outcome: { exact: 200, text: isLossy, json: isLossy } },
  'invalid UTF-8': {
    wire: signed(Buffer.from('{"type":"track","userId":"u","event":"\xff"}', 'latin1')),
    outcome: { exact: notJson, text: isLossy, json: isLossy },
  },
  'letters beyond ASCII': { wire: signed(track.replace('Order', 'Commande passée 🎉')), outcome: 200 },
  'a body split at every byte': { wire: signed(track, {}, { chunks: split }), outcome: 200 },
  'a body split at every byte, chunked': { wire: signed(track, {}, { chunks: split, chunked: true }), outcome: 200 },
  'an empty body': { wire: signed(''), outcome: { exact: notJson, text: notJson } },
  gzip: { wire: signed(gzipSync(track), { 'content-encoding': 'gzip' }), outcome: 'content_encoding_unsupported' },
  'a charset': { wire: signed(track, { 'content-type': 'application/json; charset=utf-8' }), outcome: 200 },
  'another content type': {
    wire: signed(track, { 'content-type': 'application/jsonp' }),
    outcome: 'content_type_unsupported',
    befores: ['nothing'],
  },
  'a body at the limit': { wire: signed(track), options: { limit: length }, outcome: 200 },
  'a chunked body over the limit': {
    wire: signed(track, {}, { chunked: true }),
    options: { limit: length - 1 },
    outcome: 'body_too_large',
  },
  'a body far over the limit': {
    wire: signed('x'.repeat(4 * 1024 * 1024)),
    outcome: 'body_too_large',
    befores: ['nothing'],
  },
  'a signature sent twice': { wire: signed(track, { 'x-signature': [good, good] }), outcome: 'signature_malformed' },
  'a forged signature': {
    wire: signed(track, { 'x-signature': hmac(Buffer.from(track), 'guess') }),
    outcome: { exact: 'signature_mismatch', text: 'signature_mismatch', json: isLossy },
  },
}

/** The conditions for an older major of a framework. */
const SMOKE = ['letters beyond ASCII', 'a chunked body over the limit', 'a forged signature']
/** The codes whose answers close a connection of HTTP/1. */
const CLOSING: readonly Outcome[] = ['body_too_large', 'body_timeout', 'shutting_down']

/** A request without a body. */
const empty: Wire = { headers: {}, chunks: [] }

/** @param turn Its place among the hosts: with it, each condition meets other parsers on other hosts. */
export function adapterContract(host: Host, turn: number): void {
  const warn = vi.spyOn(process, 'emitWarning')
  beforeAll(() => void warn.mockImplementation(() => {}))
  afterAll(() => {
    // The one warning is about a body that is serialised again.
    for (const [, options] of warn.mock.calls) expect(options).toEqual({ code: 'HOOKLINE_RESERIALISED' })
    warn.mockReset()
  })

  const open: Running[] = []
  afterEach(async () => void (await Promise.all(open.splice(0).map((running) => running.close()))))

  async function start(options: Partial<ReceiverOptions> = {}, before: Before = 'nothing') {
    const errors: HooklineError[] = []
    const handled: Delivery[] = []
    const clock = manualClock()
    const receiver = createReceiver({ secret, clock, onError: (error) => errors.push(error), ...options })
    receiver.on('*', (_message, delivery) => handled.push(delivery))
    const running = await host.start(receiver, before)
    open.push(running)
    return { ...running, clock, errors, handled }
  }

  async function startEndpoint(
    answer: (request: EndpointRequest) => EndpointAnswer,
    routes?: readonly string[],
    run = (endpoint: Parameters<Host['start']>[0]) => host.start(endpoint, 'nothing'),
  ): Promise<Running['send']> {
    const running = await run({
      ...(routes && { routes }),
      handle: (request) => (routes?.includes(request.path) === false ? undefined : Promise.resolve(answer(request))),
    })
    open.push(running)
    return running.send
  }

  function expectProblem(reply: Reply | undefined, code: Outcome, errors: readonly HooklineError[]): void {
    const body = JSON.parse(reply?.text ?? '')
    const headers = reply?.headers ?? {}
    expect(errors.map((error) => error.code)).toEqual([code])
    expect(body).toMatchObject({ code, status: errors[0]?.status })
    expect(reply?.status).toBe(errors[0]?.status)
    expect(headers['content-type']).toBe('application/problem+json')
    expect('www-authenticate' in headers).toBe(reply?.status === 401)
    expect(headers.allow).toBe(code === 'method_not_allowed' ? 'POST' : undefined)
    const kept = CLOSING.includes(code) ? 'close' : 'keep-alive'
    expect(headers.connection).toBe(host.http === 1 ? kept : undefined)
    expect(reply?.text).not.toContain(secret)
  }

  function expectSuccess(reply: Reply | undefined): void {
    const headers = { 'content-type': 'application/json', ...(host.http === 1 && { connection: 'keep-alive' }) }
    expect(reply).toMatchObject({ status: 200, text: '{"ok":true}', headers })
  }

  const expectText = async (send: Running['send'], path: string, text: string) =>
    expect(await send({ ...empty, path })).toMatchObject({ status: 200, text })

  it.each(host.befores)('finds the bytes where the parser left them: %s', async (before) => {
    const { send, handled } = await start({}, before)
    expectSuccess(await send(signed(track)))
    expect(handled.map(({ bodySource }) => bodySource)).toEqual([FOUND[before][1]])
    expect(Buffer.from(handled[0]?.bytes ?? []).toString()).toBe(track)
  })

  const meant = Object.entries(conditions).filter(([name]) => !host.isOlder || SMOKE.includes(name))
  const pairs = meant.flatMap(([name, { wire, options, outcome, befores }], index) => {
    const cases = host.befores.flatMap((before) => {
      const expected = typeof outcome === 'object' ? outcome[FOUND[before][0]] : outcome
      return befores?.includes(before) === false || expected === undefined ? [] : [{ before, expected }]
    })
    const chosen = cases[(index + turn) % cases.length]
    return chosen === undefined ? [] : [{ name, wire, options, ...chosen }]
  })
  it.each(pairs)('answers $name after the parser $before: $expected', async ({ before, expected, options, wire }) => {
    const { send, errors, handled } = await start(options, before)

    const reply = await send(wire)

    if (expected !== 200) expectProblem(reply, expected, errors)
    else expectSuccess(reply)
    const isExact = FOUND[before][0] === 'exact'
    const bytes = handled.map((delivery) => Buffer.from(delivery.bytes))
    if (isExact) expect(bytes).toEqual(expected === 200 ? [Buffer.concat(wire.chunks)] : [])
    else expect(bytes).toHaveLength(expected === 200 ? 1 : 0)
  })

  it('passes the method on', async () => {
    const { send, errors, handled } = await start({ methods: ['POST', 'PATCH'] })
    for (const method of ['POST', 'PATCH']) expectSuccess(await send({ ...signed(track), method }))
    const get = await send({ ...empty, method: 'GET' })
    expect(handled.map(({ method }) => method)).toEqual(['POST', 'PATCH'])
    expect([get?.status, get?.headers.allow]).toEqual([405, 'POST, PATCH'])
    expect(errors.map(({ code }) => code)).toEqual(['method_not_allowed'])
  })

  // Node sends no repeated `authorization` over HTTP/2.
  it.each(host.http === 2 ? ['x-webhook-key'] : ['x-webhook-key', 'authorization', 'user-agent'])(
    'passes %s on as repeated when it is sent twice',
    async (name) => {
      const value = 'a long random value'
      const { send, errors, handled } = await start({ secret: undefined, header: { name, value } })

      expectSuccess(await send(signed(track, { [name]: value })))
      expectProblem(await send(signed(track, { [name]: [value, 'x'] })), 'header_mismatch', errors)

      expect(handled).toHaveLength(1)
    },
  )

  it('leaves the routes beside it alone', async () => {
    const { send, errors, handled } = await start()
    const reply = await send({ ...signed('{"total": 39.0}'), path: '/neighbour' })
    if (host.hasNeighbour) expect(reply?.text).toBe('{"total":39}')
    else expect([reply?.status, reply?.text]).toEqual([404, ''])
    expect([errors, handled]).toEqual([[], []])
  })

  // HTTP/2 has no absolute target, and a web request has a URL.
  it.each(host.http === 1 ? [1] : [])('takes the path of an absolute request target, HTTP/%i', async () => {
    const send = await startEndpoint(({ path, query }) => ({ status: 200, headers: {}, body: `${path} ${query}` }))
    const statusOf = async (path: string) => (await send({ ...empty, path }))?.status
    expect(await statusOf('http://hookline.example/webhooks')).toBe(200)
    expect(await statusOf('https://hookline.example:8080/webhooks?from=destination')).toBe(200)
    expect(await statusOf('http://hookline.example/other/webhooks')).toBe(404)
    expect(await statusOf('http://hookline.example')).toBe(404)
  })

  it('gives the endpoint the query as it was sent', async () => {
    const send = await startEndpoint((request) => ({ status: 200, headers: {}, body: request.query }))
    for (const query of ['a=1&b=%20', 'a=?&b', 'a=1&a=2', '']) {
      const text = (await send({ ...empty, path: `/webhooks?${query}` }))?.text ?? '?'
      if (host.isBuffered) expect([...new URLSearchParams(text)]).toEqual([...new URLSearchParams(query)])
      else expect(text).toBe(query)
    }
  })

  it('keeps an endpoint without routes from a path that only begins with its own', async () => {
    const send = await startEndpoint(() => ({ status: 200, headers: {}, body: 'here' }))
    const [own, longer] = [await send({ ...empty, path: '/webhooks' }), await send({ ...empty, path: '/webhooks2' })]
    expect([own?.status, longer?.status]).toEqual([200, 404])
  })

  it('puts an endpoint with routes below the path', async () => {
    const echo = ({ path, query }: EndpointRequest) => ({ status: 200, headers: {}, body: `${path} ${query}` })
    const send = await startEndpoint(echo, ['/', '/v1/batch'])

    await expectText(send, '/webhooks/v1/batch?x=1', '/v1/batch x=1')
    await expectText(send, '/webhooks', '/ ')
    await expectText(send, '/webhooks/', '/ ')
    await expectText(send, '/webhooks?x=1', '/ x=1')
    for (const path of ['/webhooks/v2', '/webhooks/v1', '/webhooksv1/batch', '/webhooks2/v1/batch', '/v1/batch', '/']) {
      expect(await send({ ...empty, path })).toMatchObject({ status: 404 })
    }
  })

  it.each(Object.entries(host.mounts))('puts an endpoint with routes below a mount: %s', async (_how, run) => {
    const send = await startEndpoint(({ path }) => ({ status: 200, headers: {}, body: path }), ['/', '/v1/batch'], run)
    await expectText(send, '/tools/hookline', '/')
    await expectText(send, '/tools/hookline/?a=/b', '/')
    await expectText(send, '/tools/hookline/v1/batch?a=1?b', '/v1/batch')
    if (host.http === 1) await expectText(send, 'http://h.example/tools/hookline/?a', '/')
  })

  it.each([
    [200, 'é', '2'],
    [200, '', '0'],
    [204, '', undefined],
  ])('sends the status, the headers and the body of an answer: %i, %j', async (status, body, contentLength) => {
    const send = await startEndpoint(() => ({ status, headers: { 'x-kept': '1' }, body }))
    const [reply, head] = [await send(empty), await send({ ...empty, method: 'HEAD' })]
    expect([reply?.status, reply?.headers['x-kept'], reply?.text]).toEqual([status, '1', body])
    if (host.http !== undefined) expect(reply?.headers['content-length']).toBe(contentLength)
    expect([head?.status, head?.headers['x-kept'], head?.text]).toEqual([status, '1', ''])
  })

  // A web request and an event have no host that answers for the endpoint.
  it.each<[string, () => EndpointAnswer]>([
    ['throws', throwing('at once')],
    ['rejects', () => Promise.reject(new Error('late')) as never],
    ['gives a status that cannot be sent', () => ({ status: 9_999, headers: {}, body: '' })],
  ])('answers 500, or ends the connection, when the endpoint %s', async (how, answer) => {
    if (host.http === undefined) return
    const send = await startEndpoint(answer)
    const { status } = (await send(empty).catch(() => undefined)) ?? {}
    expect([500, how.startsWith('gives') ? undefined : 500]).toContain(status)
  })

  if (host.isBuffered || host.isOlder) return

  describe('of a body that is read as it arrives', () => {
    it('ends one that trickles past the deadline: body_timeout', async () => {
      const { send, clock, errors, handled } = await start()
      const wire = signed(track, {}, { chunks: [Buffer.from('{')], contentLength: length })

      const reply = send({ ...wire, ending: 'nothing' })
      await until(() => clock.timers === 1)
      await clock.advance(4500)

      expectProblem(await reply, 'body_timeout', errors)
      expect(handled).toEqual([])
    })

    it.each([
      ['with a content length', { contentLength: length }],
      ['chunked', { chunked: true }],
    ])('notices a client that goes away in the middle of it, %s: body_aborted', async (_how, framing) => {
      const { send, errors, handled } = await start()
      const wire = signed(track, {}, { ...framing, chunks: [Buffer.from(track).subarray(0, 20)] })
      await send({ ...wire, ending: 'abort' })
      await until(() => errors.length > 0)
      expect(errors.map((error) => error.code)).toEqual(['body_aborted'])
      expect(handled).toEqual([])
    })

    it('refuses one that never ends: body_too_large', async () => {
      const { send, errors } = await start({ limit: 1000 })
      const chunks = Array.from({ length: 40 }, () => Buffer.alloc(64 * 1024, 'x'))
      const reply = await send(signed('', {}, { chunks, chunked: true, ending: 'nothing' }))
      expectProblem(reply, 'body_too_large', errors)
    })

    it('answers a sender that has declared too much, and waits: body_too_large', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      onTestFinished(() => void vi.useRealTimers())
      const { send, errors } = await start({ limit: length - 1 })
      const reply = send(signed(track, {}, { contentLength: length, chunks: [], ending: 'nothing' }))
      await until(() => errors.length > 0 || vi.advanceTimersByTime(10) === undefined)
      expectProblem(await reply, 'body_too_large', errors)
    })
  })
}

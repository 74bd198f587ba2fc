/** The contract of an adapter: whatever the framework and whatever ran before, one outcome for one request. */

import process from 'node:process'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { BodySource } from '../../src/host/body.ts'
import type { EndpointAnswer, EndpointRequest } from '../../src/host/endpoint.ts'
import type { HooklineError } from '../../src/protocol/error.ts'
import { idOfDigest } from '../../src/protocol/id.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { Delivery } from '../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import type { Before, Host, Running } from '../support/hosts.ts'
import { until } from '../support/until.ts'
import type { Reply, Wire } from '../support/wire.ts'
import { type Condition, conditions, type Fidelity, type Outcome, secret, signed } from './conditions.ts'

const FIDELITY: Readonly<Record<Before, Fidelity>> = {
  nothing: 'exact',
  raw: 'exact',
  rawBody: 'exact',
  text: 'text',
  'rawBody-text': 'text',
  json: 'json',
}

const SOURCE: Readonly<Record<Before, BodySource>> = {
  nothing: 'stream',
  raw: 'body',
  rawBody: 'rawBody',
  text: 'body-text',
  'rawBody-text': 'rawBody-text',
  json: 'reserialised',
}

const RESERIALISED = { code: 'HOOKLINE_RESERIALISED' }

const track = JSON.stringify(fixtures.track)

export function adapterContract(host: Host): void {
  const warn = vi.spyOn(process, 'emitWarning')
  beforeAll(() => void warn.mockImplementation(() => {}))
  afterAll(() => {
    // Nothing but the one about a body that is serialised again.
    expect(warn.mock.calls.map(([, options]) => options)).toEqual(warn.mock.calls.map(() => RESERIALISED))
    warn.mockReset()
  })

  const open: Running[] = []
  afterEach(async () => {
    await Promise.all(open.splice(0).map((running) => running.close()))
  })

  async function start(options: Partial<ReceiverOptions> = {}, before: Before = 'nothing') {
    const errors: HooklineError[] = []
    const handled: Delivery[] = []
    const clock = manualClock()
    const receiver = createReceiver({ secret, clock, onError: (error) => errors.push(error), ...options })
    receiver.on('*', (_message, delivery) => handled.push(delivery))
    const running = await host.start(receiver, before)
    open.push(running)
    return { ...running, receiver, clock, errors, handled }
  }

  function expectProblem(reply: Reply | undefined, code: Outcome, errors: readonly HooklineError[]): void {
    const body = JSON.parse(reply?.text ?? '')
    expect(body.code).toBe(code)
    expect(errors.map((error) => error.code)).toEqual([code])
    expect(reply?.status).toBe(errors[0]?.status)
    expect(body.status).toBe(reply?.status)
    expect(body.path).toBe(errors[0]?.path)
    const headers = reply?.headers ?? {}
    expect(headers['content-type']).toBe('application/problem+json')
    expect('www-authenticate' in headers).toBe(reply?.status === 401)
    expect(headers.allow).toBe(code === 'method_not_allowed' ? 'POST' : undefined)
    expect(headers['retry-after']).toBe(code === 'shutting_down' ? '5' : undefined)
    if (host.http !== 1) expect(headers.connection).toBeUndefined()
    if (host.http === 1 && (code === 'body_too_large' || code === 'body_timeout'))
      expect(headers.connection).toBe('close')
    expect(reply?.text).not.toContain(secret)
  }

  function expectSuccess(reply: Reply | undefined): void {
    expect([reply?.status, reply?.text]).toEqual([200, '{"ok":true}'])
    expect(reply?.headers['content-type']).toBe('application/json')
  }

  for (const before of host.befores) {
    describe(before === 'nothing' ? 'nothing mounted before' : `${before} mounted before`, () => {
      for (const condition of conditions) {
        const outcome = outcomeOf(condition, before)
        if (outcome === undefined) continue
        it(`${condition.name}: ${outcome}`, async () => {
          const { send, errors, handled } = await start(condition.options, before)
          const reply = await send(condition.wire)
          expect(handled.map((delivery) => delivery.bodySource)).toEqual(outcome === 200 ? [SOURCE[before]] : [])
          if (outcome === 200) return expectSuccess(reply)
          expectProblem(reply, outcome, errors)
          expect(errors[0]?.path).toBe(condition.path)
        })
      }
    })
  }

  it('gives the handler the exact bytes, and an id of the signature', async () => {
    const { send, handled } = await start()
    const wire = signed(`\ufeff${track}`)
    await send(wire)
    expect(Buffer.from(handled[0]?.bytes ?? []).toString()).toBe(`\ufeff${track}`)
    expect(handled[0]?.id).toBe(idOfDigest(wire.headers['x-signature'] as string))
  })

  it.each(['GET', 'PUT', 'DELETE'])('%s: method_not_allowed', async (method) => {
    const { send, errors } = await start()
    expectProblem(await send({ method, headers: {}, chunks: [] }), 'method_not_allowed', errors)
  })

  it.each(['PUT', 'PATCH', 'DELETE'] as const)(
    '%s, among `methods`: as POST, with an id of its own',
    async (method) => {
      const { send, errors, handled } = await start({ methods: ['POST', method] })
      const wire = signed(track)
      expectSuccess(await send(wire))
      expectSuccess(await send({ ...wire, method }))
      expect(handled.map((delivery) => delivery.method)).toEqual(['POST', method])
      expect(handled[0]?.id).not.toBe(handled[1]?.id)
      const other = await send({ ...wire, method: method === 'PUT' ? 'PATCH' : 'PUT' })
      expect([other?.status, other?.headers.allow]).toEqual([405, `POST, ${method}`])
      expect(errors.map(({ code }) => code)).toEqual(['method_not_allowed'])
      const forged = await send({ ...wire, method, headers: { ...wire.headers, 'x-signature': '0'.repeat(40) } })
      expect(forged?.status).toBe(401)
    },
  )

  // Node sends no repeated `authorization` over HTTP/2.
  it.each(host.http === 2 ? ['x-webhook-key'] : ['x-webhook-key', 'authorization', 'user-agent'])(
    'refuses %s, sent twice, in place of a signature',
    async (name) => {
      const value = 'a long random value'
      const { send, errors, handled } = await start({ secret: undefined, header: { name, value } })
      const one = signed(track, { [name]: value })
      expectSuccess(await send(one))
      expectProblem(await send(signed(track, { [name]: [value, 'x'] })), 'header_mismatch', errors)
      expect(handled).toHaveLength(1)
    },
  )

  it('cuts the query off the path', async () => {
    const { send } = await start()
    expectSuccess(await send({ ...signed(track), path: '/webhooks?from=destination' }))
  })

  /** HTTP/2 has no such target, and a web request has a URL. */
  const targets: readonly (readonly [string, number])[] = [
    ['http://hookline.example/webhooks', 200],
    ['https://hookline.example:8080/webhooks?from=destination', 200],
    ['http://hookline.example/other/webhooks', 404],
    ['http://hookline.example', 404],
  ]
  it.each(host.http === 1 ? targets : [])('takes the path of an absolute request target: %s', async (path, status) => {
    const { send } = await start()
    expect((await send({ ...signed(track), path }))?.status).toBe(status)
  })

  it('leaves the routes beside it alone', async () => {
    const { send, errors, handled } = await start()
    const body = '{"total": 39.0}'
    const reply = await send({ ...signed(body), path: '/neighbour' })
    if (host.hasNeighbour) expect(reply?.text).toBe('{"total":39}')
    else expect([reply?.status, reply?.text]).toEqual([404, ''])
    expect([errors, handled]).toEqual([[], []])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('out of stock')
      },
    ],
    ['rejects', () => Promise.reject(new Error('out of stock'))],
  ])('a handler that %s: handler_failed', async (_how, handler) => {
    const { send, receiver, errors, handled } = await start()
    receiver.on('track', handler)
    expectProblem(await send(signed(track)), 'handler_failed', errors)
    expect(errors[0]?.cause).toMatchObject({ errors: [new Error('out of stock')] })
    expect(handled).toHaveLength(1)
  })

  it('a handler that hangs past the deadline: handler_timeout', async () => {
    const { send, receiver, clock, errors, handled } = await start()
    receiver.on('track', () => new Promise(() => {}))
    const reply = send(signed(track))
    await until(() => handled.length === 1)
    await clock.advance(4500)
    expectProblem(await reply, 'handler_timeout', errors)
  })

  if (!host.isBuffered) {
    it('a body that trickles past the deadline: body_timeout', async () => {
      const { send, clock, errors, handled } = await start()
      const wire = signed(track, {}, { chunks: [Buffer.from('{')], contentLength: track.length })
      const reply = send({ ...wire, ending: 'nothing' })
      await until(() => clock.timers === 1)
      await clock.advance(4499)
      expect(errors).toEqual([])
      await clock.advance(1)
      expectProblem(await reply, 'body_timeout', errors)
      expect(handled).toEqual([])
    })

    it.each([
      ['with a content length', { contentLength: track.length }],
      ['chunked', { chunked: true }],
    ])('a client that goes away in the middle of the body, %s: body_aborted', async (_how, length) => {
      const { send, errors, handled } = await start()
      const wire = signed(track, {}, { ...length, chunks: [Buffer.from(track).subarray(0, 20)] })
      await send({ ...wire, ending: 'abort' })
      await until(() => errors.length > 0)
      expect(errors.map((error) => error.code)).toEqual(['body_aborted'])
      expect(handled).toEqual([])
    })

    it('a body that never ends: body_too_large', async () => {
      const { send, errors } = await start({ limit: 1000 })
      const chunks = Array.from({ length: 40 }, () => Buffer.alloc(64 * 1024, 'x'))
      expectProblem(await send(signed('', {}, { chunks, chunked: true, ending: 'nothing' })), 'body_too_large', errors)
    })

    it.each([
      ['declared', { contentLength: track.length, chunks: [] }],
      ['sent', { chunked: true, chunks: [Buffer.from(track)] }],
    ])('a body over the limit whose sender waits, when that is %s: body_too_large', async (_when, body) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        const { send, errors } = await start({ limit: track.length - 1 })
        const reply = send(signed(track, {}, { ...body, ending: 'nothing' }))
        await until(() => errors.length > 0 || vi.advanceTimersByTime(1) === undefined)
        expectProblem(await reply, 'body_too_large', errors)
      } finally {
        vi.useRealTimers()
      }
    })
  }

  it('closing: shutting_down', async () => {
    const { send, receiver, errors, handled } = await start()
    await receiver.close()
    expectProblem(await send(signed(track)), 'shutting_down', errors)
    expect(handled).toEqual([])
  })

  async function startEndpoint(
    answer: (request: EndpointRequest) => Promise<EndpointAnswer> | EndpointAnswer,
    routes?: readonly string[],
  ): Promise<Running> {
    const running = await host.start(
      {
        ...(routes && { routes }),
        handle: (request) => (routes?.includes(request.path) === false ? undefined : Promise.resolve(answer(request))),
      },
      'nothing',
    )
    open.push(running)
    return running
  }

  it.each([
    ['/webhooks?a=1&b=%20', 'a=1&b=%20'],
    ['/webhooks?a=?&b', 'a=?&b'],
    ['/webhooks?a=1&a=2', 'a=1&a=2'],
    ['/webhooks?', ''],
    ['/webhooks', ''],
  ])('gives the endpoint the query of %s', async (path, query) => {
    const { send } = await startEndpoint((request) => ({ status: 200, headers: {}, body: request.query }))
    const text = (await send({ ...empty, path }))?.text ?? '?'
    if (host.isBuffered) expect([...new URLSearchParams(text)]).toEqual([...new URLSearchParams(query)])
    else expect(text).toBe(query)
  })

  describe.each(Object.entries(host.mounts))('mounted by %s', (_how, start) => {
    it.each<readonly [path: string, seen: string]>([
      ['/tools/hookline', '/'],
      ['/tools/hookline/', '/'],
      ['/tools/hookline?a=/b', '/'],
      ['/tools/hookline/?a=/b', '/'],
      ['/tools/hookline/v1/batch?a=1?b', '/v1/batch'],
      ...(host.http === 1 ? [['http://h.example/tools/hookline/?a', '/'] as const] : []),
    ])('an endpoint with routes is reached at %s', async (path, seen) => {
      const running = await start({
        routes: ['/', '/v1/batch'],
        async handle(request) {
          return { status: 200, headers: {}, body: request.path }
        },
      })
      open.push(running)
      const reply = await running.send({ ...empty, path })
      expect([reply?.status, reply?.text]).toEqual([200, seen])
    })
  })

  it.each([
    [200, 'é', '2'],
    [200, '', '0'],
    [204, '', undefined],
  ])('sends the body of an answer: %i, %j', async (status, body, length) => {
    const { send } = await startEndpoint(() => ({ status, headers: { 'x-kept': '1' }, body }))
    const reply = await send(empty)
    expect([reply?.status, reply?.headers['x-kept'], reply?.text]).toEqual([status, '1', body])
    if (host.http !== undefined) expect(reply?.headers['content-length']).toBe(length)
    const head = await send({ ...empty, method: 'HEAD' })
    expect([head?.status, head?.headers['x-kept'], head?.text]).toEqual([status, '1', ''])
  })

  it.each([
    ['/webhooks/v1/batch?x=1', 200, '/v1/batch x=1'],
    ['/webhooks', 200, '/ '],
    ['/webhooks/', 200, '/ '],
    ['/webhooks?x=1', 200, '/ x=1'],
    ['/webhooks/v2/batch', 404],
    ['/webhooks/v1', 404],
    ['/webhooksv1/batch', 404],
    ['/webhooks2/v1/batch', 404],
    ['/v1/batch', 404],
    ['/', 404],
  ])('puts an endpoint with routes below the path: %s is %i', async (path, status, text?: string) => {
    const { send } = await startEndpoint(
      (request) => ({ status: 200, headers: {}, body: `${request.path} ${request.query}` }),
      ['/', '/v1/batch'],
    )
    const reply = await send({ ...empty, path })
    expect(reply?.status).toBe(status)
    if (text !== undefined) expect(reply?.text).toBe(text)
  })
}

/** A request without a body. */
const empty: Wire = { headers: {}, chunks: [] }

function outcomeOf({ outcome, streamOnly }: Condition, before: Before): Outcome | undefined {
  if (streamOnly && before !== 'nothing') return undefined
  return typeof outcome === 'object' ? outcome[FIDELITY[before]] : outcome
}

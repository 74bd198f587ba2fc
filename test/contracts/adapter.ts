/** The contract of an adapter: whatever the framework and whatever ran before, one outcome for one request. */

import process from 'node:process'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Delivery } from '../../src/handling/delivery.ts'
import type { BodySource } from '../../src/http/body.ts'
import type { AnswerBody, EndpointAnswer, EndpointRequest } from '../../src/http/endpoint.ts'
import type { HooklineError } from '../../src/message/error.ts'
import { idOfDigest } from '../../src/message/id.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import type { Before, Host, Running } from '../support/hosts.ts'
import { until } from '../support/until.ts'
import { type Reply, readAll, type Wire } from '../support/wire.ts'
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

  /** Starts an endpoint that answers 200 with a body. */
  const startBody = (body: () => AnswerBody) =>
    startEndpoint(() => ({ status: 200, headers: { 'x-kept': '1' }, body: body() }))

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
    it.each<readonly [path: string, seen: string, whole: string]>([
      ['/tools/hookline', '/', '/tools/hookline'],
      ['/tools/hookline/', '/', '/tools/hookline/'],
      ['/tools/hookline?a=/b', '/', '/tools/hookline'],
      ['/tools/hookline/?a=/b', '/', '/tools/hookline/'],
      ['/tools/hookline/v1/batch?a=1?b', '/v1/batch', '/tools/hookline/v1/batch'],
      ...(host.http === 1 ? [['http://h.example/tools/hookline/?a', '/', '/tools/hookline/'] as const] : []),
    ])('an endpoint with routes is reached at %s and told the whole path', async (path, seen, whole) => {
      const running = await start({
        routes: ['/', '/v1/batch'],
        async handle(request) {
          return { status: 200, headers: {}, body: JSON.stringify([request.path, request.originalPath]) }
        },
      })
      open.push(running)
      const reply = await running.send({ ...empty, path })
      const expected = `${host.stage ?? ''}${whole}`
      expect([reply?.status, JSON.parse(reply?.text ?? '')]).toEqual([200, [seen, expected]])
    })
  })

  describe('the body of an answer', () => {
    it('may be bytes', async () => {
      const { open } = await startBody(() => Uint8Array.of(1, 0, 255, 128, 2).subarray(1, 4))
      const reply = await open(empty)
      expect([reply?.status, reply?.headers['x-kept']]).toEqual([200, '1'])
      if (host.http !== undefined) expect(reply?.headers['content-length']).toBe('3')
      expect(reply && [...(await readAll(reply))]).toEqual([0, 255, 128])
    })

    it.each([
      ['text', 200, ''],
      ['bytes', 200, new Uint8Array()],
      ['text', 204, ''],
      ['bytes', 304, new Uint8Array()],
    ])('may be empty: %s, %i', async (_what, status, body) => {
      const { send } = await startEndpoint(() => ({ status, headers: { 'x-kept': '1' }, body }))
      const reply = await send(empty)
      expect([reply?.status, reply?.headers['x-kept'], reply?.text]).toEqual([status, '1', ''])
      if (status !== 200) expect(reply?.headers['content-length']).toBeUndefined()
    })

    it('may be streamed: text, bytes and empty chunks', async () => {
      const source = watched(async function* () {
        yield 'é'
        yield ''
        yield new Uint8Array()
        yield Uint8Array.of(1, 255, 2).subarray(1, 2)
        yield '!'
      })
      const { send, open } = await startBody(source.body)
      const reply = await open(empty)
      expect([reply?.status, reply?.headers['x-kept'], reply?.headers['content-length']]).toEqual([200, '1', undefined])
      expect(reply && (await readAll(reply))).toEqual(Buffer.from([...Buffer.from('é'), 255, ...Buffer.from('!')]))
      expect((await send(empty))?.status).toBe(200)
      expect(source.returned).toBe(0)
    })

    it('may be streamed and hold nothing', async () => {
      const { send } = await startBody(async function* () {})
      expect(await send(empty)).toMatchObject({ status: 200, text: '' })
    })

    it('is not streamed to HEAD', async () => {
      const source = watched(endless)
      const { send } = await startBody(source.body)
      const reply = await send({ ...empty, method: 'HEAD' })
      expect([reply?.status, reply?.headers['x-kept'], reply?.text]).toEqual([200, '1', ''])
      expect(source.pulled).toBe(0)
    })

    if (!host.isBuffered) {
      it('is pulled only as the client reads it', async () => {
        const source = watched(endless)
        const { open } = await startBody(source.body)
        const client = new AbortController()
        const reply = await open({ ...empty, leave: client.signal })
        await stalled(() => source.pulled)
        const buffered = source.pulled
        if (host.http === undefined) expect(buffered).toBe(0)
        expect(buffered * CHUNK.length).toBeLessThan(host.http === 1 ? SOCKET_BUFFERS : 8 * CHUNK.length)
        for (let read = 0; read <= buffered * CHUNK.length; ) read += (await reply?.read())?.length ?? Number.NaN
        expect(source.pulled).toBeGreaterThan(buffered)
        client.abort()
        await until(() => source.returned === 1)
        await stalled(() => source.pulled)
      })
    }

    if (host.http !== undefined) {
      it('is cut off when the client takes nothing for 30 seconds, and not while it has nothing to say', async () => {
        vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
        try {
          let isSilent = true
          let speak = (): void => {}
          const source = watched(async function* () {
            yield CHUNK
            await new Promise<void>((resolve) => {
              speak = resolve
            })
            isSilent = false
            yield* endless()
          })
          const { open } = await startBody(source.body)
          const reply = await open(empty)
          for (let read = 0; read < CHUNK.length; ) read += (await reply?.read())?.length ?? Number.NaN
          await until(() => source.pulled === 2)
          vi.advanceTimersByTime(120_000)
          await stalled(() => source.returned)
          expect([isSilent, source.returned]).toEqual([true, 0])
          speak()
          await stalled(() => source.pulled)
          vi.advanceTimersByTime(29_999)
          const before = source.pulled
          while (source.pulled <= before) expect(await reply?.read()).toBeDefined()
          await stalled(() => source.pulled)
          vi.advanceTimersByTime(29_999)
          await stalled(() => source.returned)
          expect(source.returned).toBe(0)
          vi.advanceTimersByTime(1)
          await until(() => source.returned === 1)
          await expect(reply && readAll(reply)).rejects.toThrow()
        } finally {
          vi.useRealTimers()
        }
      })
    }

    it.each([
      ['after a chunk', ['partial']],
      ['before the first chunk', []],
    ])('that fails %s closes the connection', async (_when, chunks) => {
      const { open, send } = await startEndpoint(({ query }) => ({
        status: 200,
        headers: {},
        body: query === 'fine=1' ? 'fine' : failing(chunks),
      }))
      const broken = open(empty).then((reply) => reply && readAll(reply))
      await expect(broken).rejects.toThrow()
      expect((await send({ ...empty, path: '/webhooks?fine=1' }))?.text).toBe('fine')
    })

    it('that yields neither text nor bytes closes the connection', async () => {
      const source = watched(async function* () {
        yield 'partial'
        yield 5 as unknown as string
      })
      const { open } = await startBody(source.body)
      await expect(open(empty).then((reply) => reply && readAll(reply))).rejects.toThrow()
      if (host.http !== undefined) await until(() => source.returned === 1)
    })
  })

  if (!host.isBuffered) {
    describe('the signal', () => {
      it('aborts when the client disconnects in the middle of a streamed answer, which lets a waiting body end', async () => {
        const signals: AbortSignal[] = []
        const source = watched(async function* (signal: AbortSignal) {
          yield 'first'
          await aborted(signal)
        })
        const { open } = await startEndpoint(({ signal }) => {
          signals.push(signal)
          return { status: 200, headers: {}, body: source.body(signal) }
        })
        const client = new AbortController()
        const reply = await open({ ...empty, leave: client.signal })
        expect(Buffer.from((await reply?.read()) ?? []).toString()).toBe('first')
        expect(signals.map((signal) => signal.aborted)).toEqual([false])
        reply?.read().catch(() => {})
        await until(() => source.pulled === 2)
        client.abort()
        await until(() => source.ended)
        expect(signals.map((signal) => signal.aborted)).toEqual([true])
      })

      it.each(['before', 'after'])(
        'aborts when the client disconnects while it sends its body, read %s that',
        async (when) => {
          const requests: EndpointRequest[] = []
          const { open } = await startEndpoint(async (request) => {
            if (when === 'before') expect(request.signal.aborted).toBe(false)
            await expect(request.readBody(1000)).rejects.toMatchObject({ code: 'body_aborted' })
            requests.push(request)
            return { status: 400, headers: {}, body: '' }
          })
          void open({ ...empty, chunks: [Buffer.from('{')], contentLength: 100, ending: 'abort' })
          await until(() => requests.length === 1)
          await until(() => requests[0]?.signal.aborted === true)
        },
      )

      it('aborts when the client disconnects while it waits for the answer', async () => {
        const bodies: string[] = []
        const source = watched(endless)
        let isAborted = false
        const { open } = await startEndpoint(async (request) => {
          bodies.push(Buffer.from((await request.readBody(1000)).bytes).toString())
          await aborted(request.signal)
          isAborted = true
          return { status: 200, headers: {}, body: source.body() }
        })
        const client = new AbortController()
        void open({ ...empty, chunks: [Buffer.from('{}')], leave: client.signal })
        await until(() => bodies.length === 1)
        client.abort()
        await until(() => isAborted)
        expect(bodies).toEqual(['{}'])
        await stalled(() => source.pulled)
        expect(source.pulled).toBe(0)
      })

      it.each(['text', 'streamed'])('does not abort after a whole answer: %s', async (what) => {
        const signals: AbortSignal[] = []
        const { send, close } = await startEndpoint(({ signal }) => {
          signals.push(signal)
          return {
            status: 200,
            headers: {},
            body:
              what === 'text'
                ? 'whole'
                : watched(async function* () {
                    yield 'whole'
                  }).body(),
          }
        })
        expect((await send(empty))?.text).toBe('whole')
        await close()
        expect(signals.map((signal) => signal.aborted)).toEqual([false])
      })
    })
  }

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

const CHUNK = Buffer.alloc(64 * 1024, 'x')
const SOCKET_BUFFERS = 32 * 1024 * 1024

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield CHUNK
}

async function* failing(chunks: readonly string[]): AsyncGenerator<string> {
  yield* chunks
  throw new Error('The body failed.')
}

function watched<Args extends unknown[]>(source: (...args: Args) => AsyncGenerator<string | Uint8Array, void>) {
  const seen = {
    pulled: 0,
    returned: 0,
    ended: false,
    body(...args: Args): AsyncIterable<string | Uint8Array> {
      const chunks = source(...args)
      const iterator: AsyncIterator<string | Uint8Array> = {
        async next() {
          seen.pulled++
          const result = await chunks.next()
          seen.ended ||= result.done === true
          return result
        },
        async return() {
          seen.returned++
          return chunks.return()
        },
      }
      return { [Symbol.asyncIterator]: () => iterator }
    },
  }
  return seen
}

/** Resolves when a signal aborts. */
function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve())
  })
}

/** Waits until a number has not changed for a while. Gives up when it is far too large. */
async function stalled(read: () => number): Promise<void> {
  let last = read()
  for (let quiet = 0; quiet < 300 && last < 10_000; quiet++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (read() !== last) quiet = 0
    last = read()
  }
}

function outcomeOf({ outcome, streamOnly }: Condition, before: Before): Outcome | undefined {
  if (streamOnly && before !== 'nothing') return undefined
  return typeof outcome === 'object' ? outcome[FIDELITY[before]] : outcome
}

/** The contract of an adapter: whatever the framework and whatever ran before, one outcome for one request. */

import process from 'node:process'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { BodySource } from '../../src/protocol/body.ts'
import type { HooklineError } from '../../src/protocol/error.ts'
import type { Delivery } from '../../src/receiver/delivery.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import type { Before, Host, Running } from '../support/hosts.ts'
import { until } from '../support/until.ts'
import type { Reply } from '../support/wire.ts'
import { type Condition, conditions, type Faith, type Outcome, secret, signed } from './conditions.ts'

const FAITH: Readonly<Record<Before, Faith>> = {
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

  /** The endpoint in this host, and what its handlers and callbacks saw. */
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
          expect(handled.map((delivery) => delivery.source)).toEqual(outcome === 200 ? [SOURCE[before]] : [])
          if (outcome === 200) return expectSuccess(reply)
          expectProblem(reply, outcome, errors)
          expect(errors[0]?.path).toBe(condition.path)
        })
      }
    })
  }

  it('gives the handler the exact bytes and the signature as id', async () => {
    const { send, handled } = await start()
    const wire = signed(`\ufeff${track}`)
    await send(wire)
    expect(Buffer.from(handled[0]?.bytes ?? []).toString()).toBe(`\ufeff${track}`)
    expect(handled[0]?.id).toBe(wire.headers['x-signature'])
  })

  it.each(['GET', 'PUT', 'DELETE'])('%s: method_not_allowed', async (method) => {
    const { send, errors } = await start()
    expectProblem(await send({ method, headers: {}, chunks: [] }), 'method_not_allowed', errors)
  })

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

  it('closing: shutting_down', async () => {
    const { send, receiver, errors, handled } = await start()
    await receiver.close()
    expectProblem(await send(signed(track)), 'shutting_down', errors)
    expect(handled).toEqual([])
  })
}

function outcomeOf({ outcome, streamOnly }: Condition, before: Before): Outcome | undefined {
  if (streamOnly && before !== 'nothing') return undefined
  return typeof outcome === 'object' ? outcome[FAITH[before]] : outcome
}

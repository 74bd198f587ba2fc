/** What capture() records and answers, through undici's own request() and with the clock of the test. */

import { Readable } from 'node:stream'
import { type Dispatcher, Pool, request } from 'undici'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type Capture, type CapturedStep, capture } from '../../src/testing/capture.ts'
import type { CertificateFault } from '../../src/testing/certificates.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { type Step, startEndpoint } from '../../src/testing.ts'
import { listen } from '../send/set-up.ts'
import { throwing } from '../support/throwing.ts'
import { errorOf, post } from './post.ts'

const url = 'https://shop.example/webhooks'
const silent: Dispatcher.DispatchHandler = { onRequestStart() {} }
const dispatcherOf = (captured: Capture) => captured.dispatcher as Dispatcher

async function send(captured: Capture, body?: unknown, headers?: Dispatcher.DispatchOptions['headers']) {
  const options = { method: 'POST', dispatcher: dispatcherOf(captured), body: body as string, headers: headers ?? null }
  const answer = await request(url, options)
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text() }
}

describe('what was sent', () => {
  it.each<[string, unknown, string]>([
    ['nothing', undefined, ''],
    ['text', 'é', 'é'],
    ['bytes', Uint8Array.of(104, 105), 'hi'],
    ['a stream', Readable.from([Buffer.from('h'), Buffer.from('i')]), 'hi'],
  ])('has a body of %s', async (_name, body, text) => {
    const captured = capture()
    await send(captured, body)
    expect(captured.requests[0]?.bytes.toString()).toBe(text)
  })

  it.each<[string, Dispatcher.DispatchOptions['headers'], object]>([
    ['none', null, {}],
    ['names and values in turns', ['X-A', '1', 'X-B', '2', 'x-a', '3'], { 'x-a': '1, 3', 'x-b': '2' }],
    ['an object', { 'X-A': '1', 'X-B': ['2', '3'], 'X-C': undefined }, { 'x-a': '1', 'x-b': '2, 3' }],
    ['a list of pairs', [['X-A', '1']] as unknown as string[], { 'x-a': '1' }],
  ])('has headers of %s', async (_name, headers, expected) => {
    const captured = capture()
    captured.dispatcher.dispatch({ origin: 'http://x', path: '/', method: 'POST', headers: headers ?? null }, silent)
    const [recorded] = await captured.received(1)
    expect(recorded?.headers).toEqual(expected)
  })

  it('fails with what a body that breaks off threw, and is no request then', async () => {
    const captured = capture()
    const broken = (async function* () {
      yield 'h'
      throw new Error('the disk is gone')
    })()
    await expect(send(captured, broken)).rejects.toThrow('the disk is gone')
    expect(captured.requests).toHaveLength(0)
  })
})

it('refuses a handler of another undici, such as the fetch that Node brings', async () => {
  const captured = capture()
  const own = globalThis.fetch(url, { method: 'POST', body: 'hello', dispatcher: captured.dispatcher as never })
  expect((await errorOf(own)).cause).toMatchObject({ name: 'TypeError', message: expect.stringMatching('`handler`') })
  expect(captured.requests).toHaveLength(0)
})

describe('the script', () => {
  it('fails with what a function throws, and with an Error that it holds', async () => {
    const [broken, thrown] = [new Error('write EPIPE'), new Error('not this one')]
    const captured = capture({ script: [broken, throwing(thrown)] })
    expect(await errorOf(send(captured))).toBe(broken)
    expect(await errorOf(send(captured))).toBe(thrown)
  })

  it.each<[object, string]>([
    [{ scripts: [] }, '`scripts`'],
    [{ clock: {} }, '`clock.now`'],
    [{ script: ['offline'] }, '`script[0]`'],
  ])('%j is a TypeError', (options, message) => {
    expect(() => capture(options)).toThrow(TypeError)
    expect(() => capture(options)).toThrow(message)
  })
})

describe('the same step fails as on a real socket', () => {
  const seen = ({ code, name }: Error & { code?: string }) => ({ code, name })
  const capturedError = async (step: CapturedStep) => seen(await errorOf(send(capture({ script: [step] }))))

  const resets = (['headers', 'body', 'answer', 'chunk'] as const).map((reset) => ({ reset }))
  it.each<Step>(['reset', 'close', 'garbage', ...resets])('%j', async (step) => {
    const endpoint = await listen({ script: [step] })
    expect(await capturedError(step)).toEqual(seen(await errorOf(post(endpoint.url))))
  })

  it('refused', async () => {
    const endpoint = await startEndpoint()
    await endpoint.close()
    expect(await capturedError('refused')).toEqual(seen(await errorOf(post(endpoint.url))))
  })

  it.each<CertificateFault>(['self_signed', 'expired', 'wrong_name', 'private_ca'])('%s', async (tls) => {
    const endpoint = await startEndpoint({ tls })
    const trusted = tls === 'expired' || tls === 'wrong_name' ? { ca: endpoint.ca } : {}
    const pool = new Pool(new URL(endpoint.url).origin, { connect: trusted, allowH2: false })
    onTestFinished(async () => {
      await pool.destroy()
      await endpoint.close()
    })
    expect(await capturedError(tls)).toEqual(seen(await errorOf(post(endpoint.url, '', { dispatcher: pool }))))
  })
})

describe('the handler', () => {
  const options = { origin: 'https://shop.example', path: '/webhooks', method: 'POST' }

  function handle(captured: Capture, overrides: Dispatcher.DispatchHandler = {}) {
    const calls: string[] = []
    let controller: Dispatcher.DispatchController | undefined
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: (given) => {
        controller = given
        calls.push('start')
      },
      onResponseStart: (_controller, status) => void calls.push(`status ${status}`),
      onResponseData: (_controller, chunk) => void calls.push(`data ${chunk}`),
      onResponseEnd: () => void calls.push('end'),
      onResponseError: (_controller, error) => void calls.push(`error ${error.message}`),
      ...overrides,
    }
    expect(captured.dispatcher.dispatch(options, handler)).toBe(true)
    expect(calls).toEqual([])
    return { calls, controller: () => controller as Dispatcher.DispatchController }
  }

  it('is answered within the microtasks of the turn', async () => {
    const { calls, controller } = handle(capture({ script: [{ body: 'ok' }] }))
    await manualClock().advance(0)
    expect(calls).toEqual(['start', 'status 200', 'data ok', 'end'])
    controller().abort(new Error('too late'))
    expect([calls.length, controller().aborted, controller().reason]).toEqual([4, false, null])
  })

  it.each([
    ['refused', 'ECONNREFUSED', 'Error'],
    ['dns', 'ENOTFOUND', 'Error'],
    ['timeout', 'UND_ERR_CONNECT_TIMEOUT', 'ConnectTimeoutError'],
  ] as const)('is not told of a start where nothing could be sent: %s', async (step, code, name) => {
    const onResponseError = vi.fn()
    const { calls } = handle(capture({ script: [step] }), { onResponseError })
    await manualClock().advance(0)
    expect([calls, onResponseError.mock.lastCall?.[1]]).toEqual([[], expect.objectContaining({ code, name })])
  })

  it('may abort what hangs, once', async () => {
    const { calls, controller } = handle(capture({ script: ['hang'] }))
    await manualClock().advance(3_600_000)
    expect(calls).toEqual(['start'])
    const reason = new Error('enough')
    controller().abort(reason)
    controller().abort(new Error('again'))
    expect(calls).toEqual(['start', 'error enough'])
    expect(controller()).toMatchObject({ aborted: true, reason })
  })

  it('may abort as soon as it starts', async () => {
    const overrides: Dispatcher.DispatchHandler = { onRequestStart: (given) => given.abort(new Error('closed')) }
    for (const step of [200, { delayMs: 5 }, 'reset'] as const) {
      const { calls } = handle(capture({ script: [step] }), overrides)
      await manualClock().advance(0)
      expect(calls).toEqual(['error closed'])
    }
  })

  it('waits as long as delayMs says', async () => {
    const clock = manualClock(7)
    const captured = capture({ script: [{ delayMs: 4000 }], clock })
    const { calls } = handle(captured)
    await clock.advance(3999)
    expect(calls).toEqual(['start'])
    expect(captured.requests).toMatchObject([{ at: new Date(7) }])
    await clock.advance(1)
    expect(calls).toEqual(['start', 'status 200', 'end'])
  })

  it('gets a drip until it has enough, and leaves no timer behind', async () => {
    const clock = manualClock()
    const { calls, controller } = handle(capture({ script: ['drip'], clock }))
    await clock.advance(250)
    expect(calls).toEqual(['start', 'status 200', 'data .', 'data .'])
    controller().abort(new Error('enough'))
    expect([calls.at(-1), clock.timers]).toEqual(['error enough', 0])
  })
})

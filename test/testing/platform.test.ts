/** `startPlatform`: from a released client, through the collector and the destination, to an endpoint, on real sockets. */

import { Analytics } from '@segment/analytics-node'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { verify } from '../../src/protocol/signature.ts'
import { type EndpointOptions, type Platform, type PlatformOptions, startPlatform } from '../../src/testing.ts'
import { listen } from '../send/set-up.ts'
import { errorOf } from './post.ts'

const SECRET = 'the secret of a platform'
const HOURS = 3_600_000

/** An endpoint that answers by a script, and a platform that delivers to it. */
async function start(script: NonNullable<EndpointOptions['script']> = [200], options: Partial<PlatformOptions> = {}) {
  const endpoint = await listen({ script })
  const platform = await startPlatform({ to: endpoint.url, secret: SECRET, ...options })
  onTestFinished(() => platform.close())
  return { endpoint, platform }
}

async function post(platform: Platform, batch: readonly unknown[], writeKey = platform.writeKey): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ writeKey, batch })
  await (await fetch(platform.endpoint, { method: 'POST', headers, body })).text()
}

const track = (event: string, more: object = {}): object => ({ type: 'track', userId: 'user-1', event, ...more })

const failureOf = async (work: Promise<unknown>) => (await errorOf(work)).message

describe('a message that is delivered', () => {
  it('comes from a released client', async () => {
    const { endpoint, platform } = await start()
    const analytics = new Analytics({ writeKey: platform.writeKey, host: platform.host })
    analytics.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 12, items: [{ sku: 'a' }] } })
    await analytics.flush()

    const properties = { total: expect.any(Number), items: [{ sku: 'a' }] }
    const { message, ...report } = await platform.delivered({ type: 'track', event: 'Order Completed', properties })
    expectTypeOf(message.event).toEqualTypeOf<string>()
    expect(message.properties).toMatchObject({ total: 12 })
    expect(report).toMatchObject({ status: 'delivered', attempts: [{ ok: true, status: 200, url: endpoint.url }] })
    const [request] = endpoint.requests
    expect(verify(request?.bytes ?? Buffer.of(), request?.headers['x-signature'], SECRET)).toBe(true)
  })

  it('was delivered before, and is the first that matches', async () => {
    const { platform } = await start()
    const [first, second] = [1, 2].map((total) => track('A', { properties: { total } }))
    await platform.advance(HOURS)
    await post(platform, [first, track('B'), second])
    await platform.advance(0)
    expect(platform.messages[0]?.message.timestamp).toBe(new Date(platform.clock.now()).toISOString())
    expect(platform.messages.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered'])
    expect((await platform.delivered({ event: 'A' })).message).toMatchObject({ properties: { total: 1 } })
    expect((await platform.delivered({ event: 'A', properties: { total: 2 } })).id).toBe(platform.messages[2]?.id)
    expect((await platform.delivered()).id).toBe(platform.messages[0]?.id)
  })
})

describe('the clock', () => {
  it('moves a retry: 503, then 200', async () => {
    const { endpoint, platform } = await start([{ status: 503, body: 'starting' }, 200])
    await post(platform, [track('A')])
    expect(await failureOf(platform.delivered({ event: 'A' }))).toBe(
      `No message like {"event":"A"} was delivered. Got:\n- track "A" of user-1 waits to be retried: call platform.advance(5000). ${endpoint.url} answered 503: starting`,
    )
    await platform.advance(4_999)
    const waiting = { status: 'waiting', retryAt: new Date(platform.clock.now() + 1), attempts: [{ status: 503 }] }
    expect([endpoint.requests.length, ...platform.messages]).toMatchObject([1, waiting])
    await platform.advance(1)
    expect((await platform.delivered({ event: 'A' })).attempts.map(({ status }) => status)).toEqual([503, 200])
    expect(endpoint.requests[0]?.bytes).toEqual(endpoint.requests[1]?.bytes)
  })

  it('lets four hours pass in moments', async () => {
    const { endpoint, platform } = await start([500, 'reset', 503])
    await post(platform, [track('A')])
    const began = platform.clock.now()
    await platform.advance(4 * HOURS + 30_000)
    expect(platform.clock.now() - began).toBe(4 * HOURS + 30_000)
    expect(platform.messages).toMatchObject([{ status: 'failed', reason: 'window_over' }])
    expect(endpoint.requests.length).toBeGreaterThan(10)
    expect(await failureOf(platform.delivered())).toMatch(
      /^No message was delivered\. Got:\n- track "A" of user-1 failed: its four hours are over\. \d+ attempts, the last: .* answered 503\.$/,
    )
  })

  it('waits for each response before it moves on', async () => {
    const { platform } = await start([503, { status: 200, delayMs: 200 }])
    await post(platform, [track('A')])
    await platform.advance(1 * HOURS)
    expect(platform.messages).toMatchObject([{ status: 'delivered', attempts: [{ status: 503 }, { status: 200 }] }])
  })

  it('ends an attempt that has no response, after timeoutMs of the machine', async () => {
    const { platform } = await start(['hang', 200], { timeoutMs: 200 })
    await post(platform, [track('A')])
    expect(await failureOf(platform.delivered())).toBe(
      'No message was delivered. Got:\n- track "A" of user-1 has no response yet. Raise `timeoutMs`, or let the attempt time out: call platform.advance(5000).',
    )
    await platform.advance(5_000)
    expect(await failureOf(platform.delivered())).toMatch(/did not respond: .*Got a timeout before a response/)
    await platform.advance(5_000)
    expect((await platform.delivered()).attempts.map(({ status, error }) => status ?? error)).toEqual(['timeout', 200])
  })
})

it('rejects in time also where the test has replaced the timers', { timeout: 10_000 }, async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { platform } = await start([200], { timeoutMs: 50 })
  await platform.destination.track({ userId: 'user-1', event: 'A' })
  await platform.delivered({ event: 'A' }, { timeoutMs: 4_000 })
  expect(await failureOf(platform.delivered({ event: 'B' }))).toContain('differs')
})

describe('what was not delivered', () => {
  it('is final after a 4xx; the error has the line of the test', async () => {
    const body = '{"code":"signature_mismatch"}\u001b[31m'
    const { endpoint, platform } = await start([{ status: 401, body }])
    await post(platform, [track('A')])
    const { message, stack } = await errorOf(platform.delivered({ type: 'track' }))
    expect(stack).toMatch(/^Error: No message like .* was delivered\. Got:\n- .*\n +at .*platform\.test\.ts/)
    expect(message).toBe(
      `No message like {"type":"track"} was delivered. Got:\n- track "A" of user-1 failed: the response is final, so the message is not sent again. ${endpoint.url} answered 401: {"code":"signature_mismatch"}\\u{1b}[31m`,
    )
  })

  it('is reported at once, when nothing more comes before the clock moves', async () => {
    const { platform } = await start([{ status: 400, delayMs: 50 }, 503], { timeoutMs: 60_000 })
    await post(platform, [track('A')])
    await expect(platform.delivered({ event: 'A' })).rejects.toThrow('answered 400')
    await post(platform, [track('B')])
    await expect(platform.delivered({ event: 'B' })).rejects.toThrow('answered 503')
  })

  it('says what differs, the closest first', async () => {
    const { platform } = await start()
    const page = { type: 'page', userId: 'user-1', name: 'Home' }
    await post(platform, [page, track('B'), track('A', { properties: { total: 12, items: [1, 2] } })])
    const pattern = { type: 'track', event: 'A', properties: { items: [1] } } as const
    expect((await failureOf(platform.delivered(pattern, { timeoutMs: 50 }))).split('\n')).toEqual([
      'No message like {"type":"track","event":"A","properties":{"items":[1]}} was delivered. Got:',
      '- track "A" of user-1 differs: `properties.items` is [1,2], not [1].',
      '- track "B" of user-1 differs: `event` is "B", not "A".',
      '- page of user-1 differs: `type` is "page", not "track".',
    ])
  })

  it('is nothing at all, or skipped', async () => {
    const { platform } = await start([200], { timeoutMs: 50 })
    expect(await failureOf(platform.delivered({ type: 'page' }))).toBe(
      `No message like {"type":"page"} was delivered. Nothing reached ${platform.endpoint}. Check that the client posts there, and flush it: clients buffer calls to send several at once.`,
    )
    const message = { event: 'Sold', userId: 'u', integrations: { All: false } }
    await platform.destination.track(message)
    expect(platform.messages).toMatchObject([{ status: 'skipped', reason: 'not_selected', attempts: [], message }])
  })

  it('was refused: the write key, the path, a call of a batch', async () => {
    const { platform } = await start([200], { timeoutMs: 50 })
    await post(platform, [track('A')], 'another key')
    await post({ ...platform, endpoint: `${platform.host}/analytics` }, [])
    await post(platform, [{ type: 'track', userId: 'user-1' }, track('B')])
    const lines = (await failureOf(platform.delivered({ event: 'A' }))).split('\n')
    expect(lines.map((line) => line.replace(/ Got .*/, '').replace(/ \/v1\/batch, .*/, ' …'))).toEqual([
      'No message like {"event":"A"} was delivered. Got:',
      expect.stringContaining('- a request to /v1/batch was refused with 401 write_key_unknown: '),
      '- a request to /analytics was refused with 404 path_unknown: The path must be one of …',
      '- call 0 of a batch was refused with call_invalid: `event` must be a non-empty string.',
      '- track "B" of user-1 differs: `event` is "B", not "A".',
    ])
    expect(platform.refused).toMatchObject([{ status: 401 }, { status: 404 }, { status: 200, index: 0 }])
  })
})

describe('options', () => {
  it('pass through', async () => {
    const reports: string[] = []
    const onAttempt: NonNullable<PlatformOptions['destination']>['onAttempt'] = ({ status }) => reports.push(status)
    const destination = { userAgent: 'Shop', random: () => 0, onAttempt }
    const { endpoint, platform } = await start([429, 200], { writeKey: 'k', destination })
    await post(platform, [track('A')])
    await platform.advance(1_000)
    await platform.delivered()
    expect([reports, platform.writeKey]).toEqual([['retrying', 'delivered'], 'k'])
    expect(endpoint.requests[0]?.headers['user-agent']).toBe('Shop/1.0')
  })

  it.each<[object, string]>([
    [{}, '`to`'],
    [{ to: ['http://a.example', 1] }, '`to[1]`'],
    [{ to: 'http://a.example', destination: { clock: 1 } }, '`destination.clock`'],
    [{ to: 'http://a.example', collector: { sources: [] } }, '`collector.sources`'],
    [{ to: 'http://a.example', timeoutMs: 0 }, '`timeoutMs`'],
    [{ to: 'http://a.example', port: 65_536 }, '`port`'],
    [{ to: 'http://a.example', secret: undefined }, '`secret`'],
    [{ url: 'http://a.example' }, '`url`'],
  ])('%j', async (options, message) => {
    await expect(startPlatform(options as PlatformOptions)).rejects.toThrow(TypeError)
    await expect(startPlatform(options as PlatformOptions)).rejects.toThrow(message)
  })
})

it('closes while an attempt hangs, and at the end of a block', async () => {
  const { endpoint, platform: other } = await start(['hang'])
  let closed = other
  {
    await using platform = await startPlatform({ to: endpoint.url })
    await post(platform, [track('A')])
    await endpoint.received(1)
    closed = platform
  }
  await expect(fetch(closed.endpoint)).rejects.toThrow(TypeError)
  await expect(closed.destination.track({ userId: 'u', event: 'B' })).rejects.toThrow('The destination is closed.')
})

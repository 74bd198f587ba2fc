/** update(): settings that change while a destination runs. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { sign } from '../../src/protocol/signature.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import { type Script, startEndpoint } from '../../src/testing.ts'
import { until } from '../support/until.ts'
import { setUp } from './set-up.ts'

const HOUR = 3_600_000
const at = (...names: readonly string[]) => names.map((name) => ({ url: `https://${name}.example/` }))
const answerBy = (answers: Readonly<Record<string, number>>): Script => [
  ({ url }) => answers[new URL(url).hostname.slice(0, 1)] ?? 500,
]
type SetUp = ReturnType<typeof setUp>
const hostsOf = ({ captured }: SetUp) =>
  captured.requests.map(({ url }) => new URL(url).hostname.replace('.example', ''))

describe('what is queued', () => {
  it('goes to the new URL, with its headers and the new secret, at its next attempt', async () => {
    const { clock, captured, destination, last } = setUp([500, 200])
    await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
    destination.update({
      webhooks: [{ url: 'https://new.example/hooks?a=b', headers: { 'X-Team': 'growth' } }],
      sharedSecret: 'new secret',
    })
    await clock.advance(HOUR)

    const [first, second] = captured.requests
    expect(captured.requests).toHaveLength(2)
    expect(second?.url).toBe('https://new.example/hooks?a=b')
    expect(second?.bytes).toEqual(first?.bytes)
    expect(second?.headers).toMatchObject({
      'x-team': 'growth',
      'x-signature': sign(second?.bytes ?? Buffer.of(), 'new secret'),
    })
    expect(last()).toMatchObject({
      status: 'delivered',
      attempts: [{ url: 'a URL that was removed', status: 500 }, { url: 'https://new.example/hooks?…' }],
    })
  })

  it('is held while an update has disabled the destination, and goes on once another has enabled it', async () => {
    const { clock, captured, destination } = setUp([500, 200])
    await destination.delete({ userId: 'u' })
    await clock.advance(1_000)
    destination.update({ enabled: false })
    expect(destination.enabled).toBe(false)
    expect(await destination.delete({ userId: 'u' })).toEqual({ queued: false, reason: 'switched_off' })
    await clock.advance(HOUR)
    expect(captured.requests).toHaveLength(1)
    destination.update({ enabled: true })
    await clock.advance(10_000)
    expect(captured.requests).toHaveLength(2)
  })
})

describe('an attempt under way', () => {
  it('ends with the settings that it began with, and counts', async () => {
    const old = await startEndpoint({ script: [{ status: 200, delayMs: 50 }] })
    const reports: DeliveryReport[] = []
    const destination = createDestination({
      webhooks: [{ url: old.url }],
      sharedSecret: 'old secret',
      onAttempt: (report) => reports.push(report),
    })
    onTestFinished(() => old.close())
    await destination.delete({ userId: 'u' })
    await until(() => old.requests.length === 1)
    destination.update({ webhooks: [{ url: 'http://127.0.0.1:9/' }], sharedSecret: 'new secret' })
    expect(await destination.close()).toEqual([])

    expect(reports).toMatchObject([{ status: 'delivered', attempts: [{ url: old.url, status: 200 }] }])
    const [request] = old.requests
    expect(request?.headers['x-signature']).toBe(sign(request?.bytes ?? Buffer.of(), 'old secret'))
  })

  it('leaves no connection behind', async () => {
    const server = createServer((_request, response) => void response.end())
    server.keepAliveTimeout = 60_000 // Longer than the test.
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const reports: DeliveryReport[] = []
    const destination = createDestination({
      webhooks: [{ url: `http://127.0.0.1:${port}/` }],
      onAttempt: (report) => reports.push(report),
    })
    const count = () => new Promise<number>((resolve) => server.getConnections((_error, open) => resolve(open)))
    await destination.delete({ userId: 'u' })
    await until(() => reports.length === 1)
    expect(await count()).toBe(1)
    destination.update({ webhooks: at('new') })
    while ((await count()) > 0) await nextTurn()
    await destination.close()
    server.close()
  })

  it('ends when the grace of close() is over', async () => {
    const { clock, captured, destination } = setUp(['hang'])
    await destination.track({ userId: 'u', event: 'E' })
    await clock.advance(0)
    destination.update({ webhooks: at('new') })

    expect(await destination.close({ graceMs: 0 })).toMatchObject([{ event: 'E' }])
    expect(captured.requests).toHaveLength(1)
  })
})

describe('the URLs of a message in retry', () => {
  /** Everything fails with 500 but `a`, which is final. */
  async function inRetry(webhooks = at('a', 'b', 'c')) {
    const all = setUp(answerBy({ a: 404 }), { webhooks })
    await all.destination.delete({ userId: 'u' })
    await all.clock.advance(1_000)
    return { ...all, hosts: () => hostsOf(all).slice(webhooks.length) }
  }

  test('reordered: each keeps what it had', async () => {
    const { clock, destination, hosts, last } = await inRetry()
    destination.update({ webhooks: at('c', 'a', 'b') })
    await clock.advance(5_000)
    expect(hosts()).toEqual(['c', 'b'])
    expect(last()?.attempts.map(({ url, status }) => [new URL(url).hostname, status])).toEqual([
      ['a.example', 404],
      ['b.example', 500],
      ['c.example', 500],
      ['c.example', 500],
      ['b.example', 500],
    ])
  })

  test('removed and added again: a final response stays final', async () => {
    const { clock, destination, hosts } = await inRetry()
    destination.update({ webhooks: at('b') })
    await clock.advance(5_000)
    destination.update({ webhooks: at('a', 'b') })
    await clock.advance(60_000)
    expect(new Set(hosts())).toEqual(new Set(['b']))
  })

  test('only those left that gave a final response: it has failed, refused, without another attempt', async () => {
    const { clock, destination, hosts, last } = await inRetry()
    destination.update({ webhooks: at('a') })
    await clock.advance(HOUR)
    expect(hosts()).toEqual([])
    expect(last()).toMatchObject({ status: 'failed', reason: 'refused', latest: [], attempts: { length: 3 } })
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'refused', attempts: { length: 3 } }])
  })

  test('only those left that gave a final response, during an attempt: it has failed, refused', async () => {
    const { clock, destination, last } = setUp([({ url }) => (url.includes('a.example') ? 404 : 'hang')], {
      webhooks: at('a', 'b'),
    })
    await destination.delete({ userId: 'u' })
    await clock.advance(1_000)
    destination.update({ webhooks: at('a') })
    await clock.advance(4_000)
    expect(last()).toMatchObject({
      status: 'failed',
      reason: 'refused',
      latest: [{ status: 404 }, { error: 'timeout' }],
    })
  })

  test('only one left that is not due: the message waits for it, without a report', async () => {
    const later = { status: 503, headers: { 'retry-after': '60' } }
    const { clock, captured, destination, reports, startsOf, last } = setUp(
      [({ url }) => (url.includes('a.example') ? later : 500)],
      { webhooks: at('a', 'b') },
    )
    await destination.delete({ userId: 'u' })
    await clock.advance(1_000)
    destination.update({ webhooks: at('a') })
    await clock.advance(58_000)
    expect([captured.requests.length, reports.length]).toEqual([2, 1])
    await clock.advance(1_000)
    expect(startsOf(last())).toEqual([0, 0, 60_000])
  })
})

describe('what is left out stays', () => {
  it('as an earlier update, enable() and disable() have set it', async () => {
    const { clock, captured, destination } = setUp([200])
    destination.update({ sharedSecret: 'new secret' })
    destination.disable()
    destination.update({ webhooks: at('new') })
    expect(destination.enabled).toBe(false)
    destination.enable()
    destination.update({})
    await destination.delete({ userId: 'u' })
    await clock.advance(0)

    const [request] = captured.requests
    expect(request?.url).toBe('https://new.example/')
    expect(request?.headers['x-signature']).toBe(sign(request?.bytes ?? Buffer.of(), 'new secret'))
  })
})

it('warns of a secret that looks as if it was read wrongly when it is given, and not again', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => void warn.mockRestore())
  const { destination } = setUp([200], { sharedSecret: 'secret\n' })
  destination.update({ enabled: false })
  expect(warn).toHaveBeenCalledTimes(1)
  destination.update({ sharedSecret: '"new secret"' })
  expect(warn).toHaveBeenCalledTimes(2)
})

it('sends unsigned from now on when the secret is null', async () => {
  const { clock, captured, destination } = setUp()
  destination.update({ sharedSecret: null })
  await destination.delete({ userId: 'u' })
  await clock.advance(0)
  expect(captured.requests[0]?.headers).not.toHaveProperty('x-signature')
})

describe('a wrong update changes nothing', () => {
  const wrong: readonly (readonly [string, unknown, string])[] = [
    ['no object', 5, '`update: options`'],
    ['an unknown name', { webhook: at('x') }, '`webhook`'],
    ['no webhooks', { webhooks: [] }, '`webhooks`'],
    ['half a URL', { webhooks: [{ url: 'shop.example' }] }, '`webhooks[0].url`'],
    ['an empty secret', { sharedSecret: '' }, '`sharedSecret`'],
    ['enabled: undefined', { enabled: undefined }, '`enabled`'],
    ['what is set at creation', { timeoutMs: 1_000 }, '`timeoutMs`'],
  ]

  it.each(wrong)('%s', async (_case, changes, message) => {
    const { clock, captured, destination } = setUp([500, 200])
    await destination.delete({ userId: 'u' })
    await clock.advance(0)
    const right = { sharedSecret: 'new secret', enabled: false, webhooks: at('new') }
    const isObject = typeof changes === 'object' && changes !== null
    const update = () => destination.update((isObject ? { ...right, ...changes } : changes) as never)
    expect(update).toThrow(TypeError)
    expect(update).toThrow(message)

    expect(destination.enabled).toBe(true)
    await clock.advance(HOUR)
    const [first, second] = captured.requests
    expect(second).toMatchObject({ url: first?.url, headers: first?.headers })
  })
})

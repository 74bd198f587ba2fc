/** update(): settings that change while a destination runs. */

import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { sign } from '../../src/protocol/signature.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { Script } from '../../src/testing.ts'
import { expectRefusal } from '../support/refusal.ts'
import { until } from '../support/until.ts'
import { HOUR, listen, serveKept, setUp } from './set-up.ts'

const at = (...names: readonly string[]) => names.map((name) => ({ url: `https://${name}.example/` }))
const hostOf = (url: string) => new URL(url).hostname.replace('.example', '')
const answerBy = (answers: Readonly<Record<string, Script[number]>>): Script => [
  ({ url }) => answers[hostOf(url)] as 200,
]

it('what is queued goes to the new URL, with its headers and the new secret, at its next attempt', async () => {
  const { clock, captured, destination, last } = setUp([500, 200])
  await destination.track({ userId: 'u', event: 'E' })
  await clock.advance(0)

  const url = 'https://new.example/hooks?a=b'
  destination.update({ webhooks: [{ url, headers: { 'X-Team': 'growth' } }], sharedSecret: 'new secret' })
  await clock.advance(HOUR)

  const [first, second, ...others] = captured.requests
  const signature = sign(second?.bytes ?? Buffer.of(), 'new secret')
  expect(others).toEqual([])
  expect(second).toMatchObject({ url, headers: { 'x-team': 'growth', 'x-signature': signature } })
  expect(second?.bytes).toEqual(first?.bytes)
  const attempts = [{ url: 'a URL that was removed', status: 500 }, { url: 'https://new.example/hooks?…' }]
  expect(last()).toMatchObject({ status: 'delivered', attempts })
})

describe('an attempt under way', () => {
  it('ends with the settings that it began with, and counts', async () => {
    const old = await listen({ script: [{ status: 200, delayMs: 50 }] })
    const reports: DeliveryReport[] = []
    const destination = createDestination({
      webhooks: [{ url: old.url }],
      sharedSecret: 'old secret',
      onAttempt: (report) => reports.push(report),
    })
    await destination.delete({ userId: 'u' })
    await until(() => old.requests.length === 1)

    destination.update({ webhooks: [{ url: 'http://127.0.0.1:9/' }], sharedSecret: 'new secret' })
    expect(await destination.close()).toEqual([])

    expect(reports).toMatchObject([{ status: 'delivered', attempts: [{ url: old.url, status: 200 }] }])
    const [request] = old.requests
    expect(request?.headers['x-signature']).toBe(sign(request?.bytes ?? Buffer.of(), 'old secret'))
  })

  it('leaves no connection behind', async () => {
    const { url, open } = await serveKept()
    const onAttempt = vi.fn()
    const destination = createDestination({ webhooks: [{ url }], onAttempt })
    onTestFinished(() => void destination.close())
    await destination.delete({ userId: 'u' })
    await vi.waitFor(() => expect(onAttempt).toHaveBeenCalled())
    expect(open.size).toBe(1)

    destination.update({ webhooks: at('new') })

    await until(() => open.size === 0)
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
  const later = { status: 503, headers: { 'retry-after': '60' } }

  /** A message that was posted once, at least, to each of these. */
  async function setUpRetry(answers: Readonly<Record<string, Script[number]>>) {
    const names = Object.keys(answers)
    const set = setUp(answerBy(answers), { webhooks: at(...names) })
    await set.destination.delete({ userId: 'u' })
    await set.clock.advance(1_000)
    const hosts = () => set.captured.requests.slice(names.length).map(({ url }) => hostOf(url))
    return { ...set, hosts }
  }

  test('keep what they had when they are reordered', async () => {
    const { clock, destination, hosts, last } = await setUpRetry({ a: 404, b: 500, c: 500 })
    destination.update({ webhooks: at('c', 'a', 'b') })
    await clock.advance(5_000)
    expect(hosts()).toEqual(['c', 'b'])
    const attempts = last()?.attempts.map(({ url, status }) => `${hostOf(url)} ${status}`)
    expect(attempts).toEqual(['a 404', 'b 500', 'c 500', 'c 500', 'b 500'])
  })

  test.each<[string, Script[number], object]>([
    ['without another attempt', 500, { latest: [], attempts: { length: 2 } }],
    ['also during an attempt', 'hang', { latest: [{ status: 404 }, { error: 'timeout' }] }],
  ])('of which only one is left that gave a final response: it has failed, refused, %s', async (_when, b, report) => {
    const { clock, destination, hosts, last } = await setUpRetry({ a: 404, b })
    destination.update({ webhooks: at('a') })
    await clock.advance(HOUR)
    expect(hosts()).toEqual([])
    expect(last()).toMatchObject({ status: 'failed', reason: 'refused', ...report })
    expect(await destination.deadLetters()).toMatchObject([{ reason: 'refused', attempts: { length: 2 } }])
  })

  test('of which only one is left that is not due: the message waits for it, without a report', async () => {
    const { clock, captured, destination, reports, startsOf, last } = await setUpRetry({ a: later, b: 500 })
    destination.update({ webhooks: at('a') })
    await clock.advance(58_000)
    expect([captured.requests.length, reports.length]).toEqual([2, 1])
    await clock.advance(1_000)
    expect(startsOf(last())).toEqual([0, 0, 60_000])
  })
})

it('what is left out stays as an earlier update, enable() and disable() have set it; null removes the secret', async () => {
  const { clock, captured, destination } = setUp()

  destination.update({ sharedSecret: 'new secret' })
  destination.disable()
  destination.update({ webhooks: at('new') })
  expect(destination.enabled).toBe(false)
  destination.enable()
  destination.update({})
  await destination.delete({ userId: 'u' })
  await clock.advance(0)

  destination.update({ sharedSecret: null })
  await destination.delete({ userId: 'u' })
  await clock.advance(0)

  const [request, unsigned] = captured.requests
  expect(request?.url).toBe('https://new.example/')
  expect(request?.headers['x-signature']).toBe(sign(request?.bytes ?? Buffer.of(), 'new secret'))
  expect(unsigned?.headers).not.toHaveProperty('x-signature')
})

it.each<[option: string, changes: unknown]>([
  ['update: options', 5],
  ['webhooks', { webhooks: [] }],
  ['sharedSecret', { sharedSecret: '' }],
  ['enabled', { enabled: undefined }],
  ['timeoutMs', { timeoutMs: 1_000 }],
])('a wrong update changes nothing: `%s`, %j', async (option, changes) => {
  const { clock, captured, destination } = setUp([500, 200])
  await destination.delete({ userId: 'u' })
  await clock.advance(0)

  const right = { sharedSecret: 'new secret', enabled: false, webhooks: at('new') }
  const given = typeof changes === 'object' ? { ...right, ...changes } : changes
  await expectRefusal(() => destination.update(given as never), `\`${option}\``)
  await clock.advance(HOUR)

  const [first, second] = captured.requests
  expect(destination.enabled).toBe(true)
  expect(second).toMatchObject({ url: first?.url, headers: first?.headers })
})

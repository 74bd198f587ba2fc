/** Many sources that post to one receiver, each with a secret of its own. */

import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Delivery, OnRejected, ReceiverOptions, SourceRequest, SourceSecrets } from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { readSecret } from '../../src/receive/secrets.ts'
import { fixtures, manualClock, signedRequest } from '../../src/testing.ts'
import { hear } from '../support/channel.ts'
import { setUp, watchWarnings } from '../support/receive.ts'

const SECRETS: Readonly<Record<string, string | string[]>> = { shop: 'of the shop', app: ['new', 'of the app'] }
const source = ({ path }: SourceRequest) => /^\/webhooks\/([a-z0-9-]+)$/.exec(path)?.[1]

afterEach(() => void vi.restoreAllMocks())

function setUpSources(given: Partial<SourceSecrets> = {}, options: ReceiverOptions = {}) {
  const secrets = vi.fn(async (name: string) => SECRETS[name])
  const set = setUp({ secret: { source, secrets, ...given }, ...options })
  const deliveries: Delivery[] = []
  set.receiver.on('*', (_message, delivery) => deliveries.push(delivery))
  const deliver = (path: string, secret: string, message: object = fixtures.track, headers = {}) => {
    const signed = signedRequest(JSON.stringify(message), secret)
    return set.receiver.receive(signed.bytes, { ...signed.headers, ...headers }, { path })
  }
  return { ...set, secrets, deliveries, deliver }
}

it('a request is checked with the secret of its source, which the delivery names, and with no other', async () => {
  const { deliver, deliveries } = setUpSources()
  const refused = { status: 401, error: { code: 'signature_mismatch' } }

  expect(await deliver('/webhooks/shop', 'of the shop')).toMatchObject({ status: 200 })
  expect(await deliver('/webhooks/app', 'of the app')).toMatchObject({ status: 200 })
  expect(await deliver('/webhooks/app', 'of the shop')).toMatchObject(refused)
  expect(await deliver('/webhooks/shop', 'of the app')).toMatchObject(refused)

  expect(deliveries).toMatchObject([
    { source: 'shop', secretIndex: 0, verified: 'signature' },
    { source: 'app', secretIndex: 1, verified: 'signature' },
  ])
})

it('secrets of a source that fail refuse nothing of another', async () => {
  const secrets = async (name: string) => (name === 'app' ? Promise.reject(new Error('sealed')) : SECRETS[name])
  const { deliver, errors } = setUpSources({ secrets })
  const answers = await Promise.all(['app', 'shop'].map((name) => deliver(`/webhooks/${name}`, `of the ${name}`)))
  expect(answers.map(({ status }) => status)).toEqual([503, 200])
  expect(errors).toMatchObject([{ code: 'secret_unavailable', cause: new Error('sealed') }])
})

describe('an unknown source', () => {
  it('is refused like a forged signature, and asked for at most every ten seconds', async () => {
    const { deliver, secrets, clock, errors } = setUpSources()
    const answers = [await deliver('/webhooks/shop', 'guess'), await deliver('/webhooks/none', 'guess')]
    expect(answers[1]).toEqual({ ...answers[0], error: errors[1] })
    expect(answers[1]).toMatchObject({ status: 401, body: answers[0]?.body })
    for (let forgery = 0; forgery < 100; forgery++) await deliver('/webhooks/none', 'guess')
    expect(secrets.mock.calls).toEqual([['shop'], ['none']])
    await clock.advance(10_000)
    await Promise.all([1, 2, 3].map(() => deliver('/webhooks/none', 'guess')))
    expect(secrets).toHaveBeenCalledTimes(3)
  })

  it.each([
    ['has no name', { source: () => undefined }],
    ['has no secret', { secrets: () => undefined }],
    ['has none yet that a slow provider knows', { secrets: async () => undefined }],
  ])('that %s is told with its path, to all but the stranger', async (_what, given) => {
    const forged = await setUpSources().deliver('/webhooks/shop', 'guess')
    const [rejected, answered] = [vi.fn(), vi.fn()]
    const onRejected: OnRejected = (...args) => {
      rejected(...args)
      throw new Error('full')
    }
    const warn = watchWarnings()
    const { deliver, receiver, errors, failed } = setUpSources(given, { onRejected })
    receiver.observe({ answered })
    const channel = hear('hookline:refused')
    const path = `/webhooks/${'none\u001b'.repeat(100)}`

    const answer = await deliver(path, 'guess')

    expect(rejected).not.toHaveBeenCalled()
    await new Promise(setImmediate)
    expect([answer.status, answer.headers, answer.body]).toEqual([forged.status, forged.headers, forged.body])
    expect(errors).toMatchObject([{ code: 'source_unknown', status: 401 }])
    expect(errors[0]?.message).toMatch(/^.{1,400}$/)
    expect(failed).toMatchObject([{ path }])
    expect(rejected.mock.calls).toEqual([[errors[0], expect.objectContaining({ bytes: new Uint8Array(), path })]])
    expect(answered).toHaveBeenCalledWith(expect.objectContaining({ status: 401, error: errors[0] }))
    expect(channel).toMatchObject([{ error: { code: 'source_unknown' }, request: { path } }])
    expect(warn.mock.calls.map(([, options]) => options)).toMatchObject([{ code: 'HOOKLINE_ON_REJECTED' }])
  })

  it('costs as many signatures as a forged request of one that exists', async () => {
    const compared = vi.spyOn(crypto, 'timingSafeEqual')
    syncBuiltinESMExports()
    onTestFinished(() => {
      compared.mockRestore()
      syncBuiltinESMExports()
    })
    const cost = async (given: Partial<SourceSecrets>, path: string) => {
      const { deliver } = setUpSources(given)
      await deliver(path, 'guess')
      await deliver(path, 'guess')
      return compared.mock.calls.splice(0).length
    }
    const known = await cost({}, '/webhooks/shop')
    expect(known).toBe(2)
    expect(await cost({}, '/webhooks/none')).toBe(known)
    expect(await cost({}, '/other')).toBe(known)
  })

  it('that is added is known ten seconds later', async () => {
    const known = { ...SECRETS }
    const { deliver, clock } = setUpSources({ secrets: (name) => known[name] })
    expect(await deliver('/webhooks/site', 'of the site')).toMatchObject({ status: 401 })
    known.site = 'of the site'
    await clock.advance(10_000)
    expect(await deliver('/webhooks/site', 'of the site')).toMatchObject({ status: 200 })
  })

  it.each([
    ['undefined', undefined],
    ['an empty name', ''],
    ['a name of more than 200 characters', 'n'.repeat(201)],
  ])('is not asked for when the source is %s', async (_what, name) => {
    const { deliver, secrets } = setUpSources({ source: () => name })
    expect(await deliver('/webhooks/shop', 'of the shop')).toMatchObject({ status: 401 })
    expect(secrets).not.toHaveBeenCalled()
  })

  it.each([
    ['throws', () => decodeURIComponent('%'), URIError],
    ['returns something else', () => Promise.resolve('shop') as never, TypeError],
  ])('because `source` %s: 503, and nothing is asked for', async (_what, named, cause) => {
    const { deliver, secrets, errors } = setUpSources({ source: named })
    expect(await deliver('/webhooks/shop', 'of the shop')).toMatchObject({ status: 503 })
    expect(errors[0]).toMatchObject({ code: 'secret_unavailable', cause: expect.any(cause) })
    expect(secrets).not.toHaveBeenCalled()
  })
})

describe('the secrets of ever new sources', () => {
  const SOURCES_LIMIT = 10_000
  const UNKNOWN_SOURCES_LIMIT = 100

  function setUpKeys(secrets: SourceSecrets['secrets']) {
    const asked = vi.fn(secrets)
    const findKeys = readSecret({ secret: { source: ({ path }) => path, secrets: asked } }, manualClock())
    return { asked, keysOf: (path: string) => findKeys?.({ path, query: '', headers: {} }).keys() }
  }

  it('fill no memory and push out no source that exists', async () => {
    const shop = 's'.repeat(200)
    const { asked, keysOf } = setUpKeys(async (name) => (name === shop ? 'of the shop' : undefined))
    await keysOf(shop)
    for (let index = 0; index < 1_000; index += 1) expect(await keysOf(`none-${index}`)).toEqual([])

    await keysOf(shop)
    for (let index = 1_000 - UNKNOWN_SOURCES_LIMIT; index < 1_000; index += 1) await keysOf(`none-${index}`)

    expect(asked).toHaveBeenCalledTimes(1_001)
    await keysOf('none-0') // It is forgotten.
    expect(asked).toHaveBeenCalledTimes(1_002)
  })

  it('push out the oldest when all exist', async () => {
    const { asked, keysOf } = setUpKeys(() => 'the same')
    for (let index = 0; index <= SOURCES_LIMIT; index += 1) await keysOf(`shop-${index}`)
    for (const [name, calls] of Object.entries({ 'shop-1': 1, 'shop-0': 2 })) {
      await keysOf(name)
      expect(asked).toHaveBeenCalledTimes(SOURCES_LIMIT + calls)
    }
  })

  it('are asked for 100 at a time at most, and push out no source that exists while a provider hangs', async () => {
    const { asked, keysOf } = setUpKeys((name) => (name.startsWith('none') ? new Promise(() => {}) : 'its secret'))
    for (let index = 0; index < SOURCES_LIMIT; index += 1) await keysOf(`shop-${index}`)
    for (let index = 0; index < UNKNOWN_SOURCES_LIMIT; index += 1) void keysOf(`none-${index}`)
    expect(() => keysOf('new')).toThrow(expect.objectContaining({ code: 'secret_unavailable' }))
    for (let index = 0; index < SOURCES_LIMIT; index += 1) void keysOf(`shop-${index}`)
    expect(asked).toHaveBeenCalledTimes(SOURCES_LIMIT + UNKNOWN_SOURCES_LIMIT)
  })
})

it.each<[string, ReceiverOptions]>([
  ['dedupe', { dedupe: memoryDedupe() }],
  ['dedupe with a key', { dedupe: { store: memoryDedupe(), key: () => 'order-1' } }],
  ['an inbox', { inbox: memoryQueue() }],
  ['an inbox with a key', { inbox: { queue: memoryQueue(), key: () => 'order-1' } }],
])('two sources with one secret that send the same bytes are told apart by %s', async (_by, options) => {
  const { deliver, deliveries, receiver, clock } = setUpSources({ secrets: () => 'the same' }, options)
  if (options.inbox !== undefined) receiver.start()

  for (const name of ['shop', 'app', 'shop']) await deliver(`/webhooks/${name}`, 'the same')
  await clock.advance(0)

  expect(deliveries.map((delivery) => delivery.source)).toEqual(['shop', 'app'])
  expect(new Set(deliveries.map(({ id }) => id)).size).toBe(2)
  for (const { id } of deliveries)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
})

describe('the source', () => {
  it('stays with a stored message: in its attempts, as a dead letter and when it would be lost', async () => {
    const clock = manualClock()
    const inbox = { queue: memoryQueue({ clock }), retries: [1000] }
    const { receiver, deliver, deliveries } = setUpSources({}, { clock, inbox })
    receiver.on('page', () => Promise.reject(new Error('no'))).start()
    await deliver('/webhooks/shop', 'of the shop', fixtures.page)
    await clock.advance(1000)
    expect(deliveries.map((delivery) => delivery.source)).toEqual(['shop', 'shop'])
    expect(deliveries[0]?.id).toBe(deliveries[1]?.id)
    expect(await receiver.deadLetters()).toMatchObject([{ source: 'shop' }])
    await receiver.redrive('all')
    expect(await receiver.close({ graceMs: 0 })).toMatchObject([{ source: 'shop' }])
  })

  it('says whose users to forget: those of another may have the same ids', async () => {
    const { receiver, deliver } = setUpSources({}, { inbox: memoryQueue() })
    for (const name of ['shop', 'app'])
      for (const userId of ['ada', 'bob'])
        await deliver(`/webhooks/${name}`, `of the ${name}`, { ...fixtures.page, userId })
    expect(await receiver.forget('ada', { source: 'shop' })).toEqual({ deleted: 1, active: 0 })
    expect(await receiver.forget('ada', { source: 'shop' })).toEqual({ deleted: 0, active: 0 })
    expect(await receiver.forget('bob', { source: undefined })).toEqual({ deleted: 2, active: 0 })
    expect(await receiver.forget('ada')).toEqual({ deleted: 1, active: 0 })
  })
})

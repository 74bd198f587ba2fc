/** What each call takes and how it travels ("Go client library", Message types and Endpoints). */

import { readFileSync } from 'node:fs'
import { describe, expect, it, test } from 'vitest'
import type { Client } from '../../src/client.ts'
import { settle, setUp } from './dispatcher.ts'

type Method = 'identify' | 'track' | 'page' | 'screen' | 'group' | 'alias'

const NOW = '2026-01-15T09:30:00.000Z'
const COMPLETE: Readonly<Record<Method, object>> = {
  identify: { userId: 'user-1' },
  track: { userId: 'user-1', event: 'Order Completed' },
  page: { userId: 'user-1' },
  screen: { userId: 'user-1' },
  group: { userId: 'user-1', groupId: 'group-1' },
  alias: { userId: 'user-1', previousId: 'user-0' },
}
const METHODS = Object.keys(COMPLETE) as Method[]

async function travel(method: Method, call: object): Promise<Record<string, unknown>> {
  const { client, sent } = setUp([], { flushAt: 1 })
  record(client, method, call)
  await settle()
  expect(sent).toHaveLength(1)
  return sent[0]?.calls[0] as unknown as Record<string, unknown>
}

function record(client: Client, method: Method, call: unknown): void {
  ;(client[method] as (call: unknown) => void)(call)
}

function refusal(method: Method, call: unknown): unknown {
  const { client } = setUp()
  try {
    record(client, method, call)
  } catch (error) {
    return error
  }
  return undefined
}

describe('the message table', () => {
  it.each<[string, Method, object, object]>([
    [
      'Alias · PreviousId, its other spelling empty or the same',
      'alias',
      { userId: 'u', previousId: 'user-0', 'Previous ID': '', 'User ID': 'u' },
      { previousId: 'user-0' },
    ],
  ])('%s', async (_row, method, call, expected) => {
    expect(await travel(method, call)).toMatchObject({ type: method, ...expected })
  })

  it.each(METHODS)(
    '%s · a timestamp travels in UTC with milliseconds and Z, whatever its form; without one, it is now',
    async (method) => {
      const travels = async (timestamp?: unknown) =>
        (await travel(method, { ...COMPLETE[method], ...(timestamp !== undefined && { timestamp }) })).timestamp
      expect(await travels('2020-02-03T04:05:06+01:00')).toBe('2020-02-03T03:05:06.000Z')
      expect(await travels('2020-02-03T03:05:06.789999Z')).toBe('2020-02-03T03:05:06.789Z')
      expect(await travels(new Date('2020-02-03'))).toBe('2020-02-03T00:00:00.000Z')
      expect(await travels()).toBe(NOW)
    },
  )

  it.each(METHODS)('%s · a userId of null stands beside an anonymousId', async (method) => {
    if (method === 'alias') return expect(refusal('alias', { userId: null, previousId: 'p' })).toBeInstanceOf(TypeError)
    const ids = { userId: null, anonymousId: 'a-1' }
    expect(await travel(method, { ...COMPLETE[method], ...ids })).toMatchObject(ids)
  })
})

describe('required fields, checked at the call', () => {
  it.each<[string, Method, object, string]>([
    ['Identify · one of UserId or AnonymousId', 'identify', {}, 'userId'],
    ['Identify · UserId is text', 'identify', { userId: 7, anonymousId: 'a' }, 'userId'],
    ['Identify · UserId is not empty', 'identify', { userId: '' }, 'userId'],
    ['Identify · AnonymousId is not empty', 'identify', { anonymousId: '' }, 'anonymousId'],
    ['Identify · Traits is an object', 'identify', { userId: 'u', traits: [] }, 'traits'],
    ['Track · Event', 'track', { userId: 'u' }, 'event'],
    ['Track · Event is not empty', 'track', { userId: 'u', event: '' }, 'event'],
    ['Track · one of UserId or AnonymousId', 'track', { event: 'E' }, 'userId'],
    ['Track · Properties is an object', 'track', { userId: 'u', event: 'E', properties: 'x' }, 'properties'],
    ['Page · one of UserId or AnonymousId', 'page', { name: 'Home' }, 'userId'],
    ['Page · Category is text', 'page', { userId: 'u', category: 7 }, 'category'],
    ['Page · Traits and properties', 'page', { userId: 'u', traits: {}, properties: {} }, 'traits'],
    ['Page · Timestamp is ISO 8601', 'page', { userId: 'u', timestamp: 'yesterday' }, 'timestamp'],
    ['Page · Timestamp is a valid Date', 'page', { userId: 'u', timestamp: new Date(Number.NaN) }, 'timestamp'],
    ['Page · Context is an object', 'page', { userId: 'u', context: 'x' }, 'context'],
    ['Screen · one of UserId or AnonymousId', 'screen', { name: 'Cart' }, 'userId'],
    ['Group · one of UserId or AnonymousId', 'group', { groupId: 'g' }, 'userId'],
    ['Group · GroupId', 'group', { userId: 'u' }, 'groupId'],
    ['Alias · UserId', 'alias', { previousId: 'p' }, 'userId'],
    ['Alias · PreviousId', 'alias', { userId: 'u' }, 'previousId'],
    ['Alias · an AnonymousId is no UserId', 'alias', { anonymousId: 'a', previousId: 'p' }, 'userId'],
    [
      'Alias · one PreviousId, in both spellings',
      'alias',
      { userId: 'u', previousId: 'p', 'Previous ID': 'q' },
      'Previous ID',
    ],
    ['Alias · one UserId, in both spellings', 'alias', { userId: 'u', previousId: 'p', 'User ID': 7 }, 'User ID'],
    ['any · MessageId is text', 'track', { userId: 'u', event: 'E', messageId: 7 }, 'messageId'],
    [
      'any · Integrations is an object',
      'track',
      { userId: 'u', event: 'E', integrations: ['Webhooks'] },
      'integrations',
    ],
  ])('%s', (_row, method, call, field) => {
    const error = refusal(method, call)
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).toMatch(new RegExp(`^TypeError: ${method}: \`${field}\` (must|is) `))
  })

  it.each([undefined, null, 'user-1', [], new Date(), () => {}])('a call that is no plain object: %o', (call) => {
    expect(String(refusal('identify', call))).toMatch(
      /^TypeError: identify: the call must be a plain object, not of a class\. Got .+\. Pass its fields/,
    )
  })

  it('an object without a prototype, or of another realm, is plain', async () => {
    const bare = Object.assign(Object.create(null), { userId: 'u', event: 'E' })
    const foreign = Object.create(Object.create(null), { n: { value: 1, enumerable: true } })
    expect(await travel('track', { ...bare, properties: foreign })).toMatchObject({ event: 'E', properties: { n: 1 } })
    expect(await travel('track', bare)).toMatchObject({ event: 'E' })
  })
})

describe('what is filled in', () => {
  it.each(METHODS)('%s · type, a random messageId, the time, and the library', async (method) => {
    const call = await travel(method, { ...COMPLETE[method], type: 'delete' })
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(call).toEqual({
      ...COMPLETE[method],
      type: method,
      messageId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      timestamp: NOW,
      context: { library: { name: 'hookline', version } },
    })
  })

  it('the time is the time of the call, not of the flush', async () => {
    const { client, clock, dispatcher } = setUp()
    const times = ['2026-01-15T09:30:00.000Z', '2026-01-15T09:30:00.000Z', '2026-01-15T09:30:01.234Z']
    client.identify({ userId: 'u' })
    client.identify({ userId: 'u' })
    await clock.advance(1234)
    client.identify({ userId: 'u' })
    await client.flush()
    expect(dispatcher.calls.map(({ timestamp }) => timestamp)).toEqual(times)
  })
})

describe('a call is written down at once', () => {
  test('what the caller changes afterwards does not matter', async () => {
    const { client, sent } = setUp()
    const properties = { total: 1, items: ['a'] }
    const call = { userId: 'user-1', event: 'E', properties }
    client.track(call)
    properties.total = 2
    properties.items.push('b')
    call.event = 'F'
    await client.flush()
    expect(sent[0]?.calls[0]).toMatchObject({ event: 'E', properties: { total: 1, items: ['a'] } })
  })

  test('toJSON is asked once, also when the batch is sent again', async () => {
    let asked = 0
    const price = { toJSON: () => ++asked }
    const { client, clock, sent } = setUp([500, 500, 200], { flushAt: 1 })
    client.track({ userId: 'u', event: 'E', properties: { price } })
    await clock.advance(60_000)
    expect(sent.map(({ calls }) => calls[0])).toMatchObject(Array(3).fill({ properties: { price: 1 } }))
  })

  test('a getter is asked once: what is checked is what travels', async () => {
    let asked = 0
    const call = {
      event: 'E',
      get userId() {
        return asked++ === 0 ? 'user-1' : 7
      },
    }
    expect(await travel('track', call)).toMatchObject({ userId: 'user-1' })
    expect(asked).toBe(1)
  })

  test('a call with toJSON is refused, which would travel in its place', () => {
    for (const toJSON of [() => undefined, () => ({})]) {
      const error = refusal('track', { userId: 'u', event: 'E', toJSON })
      expect(error).toBeInstanceOf(TypeError)
      expect(String(error)).toBe('TypeError: track: `toJSON` must not be a function. Got a function. Pass plain data.')
    }
  })

  test.each(['properties', 'traits', 'context', 'integrations'])('%s with toJSON are refused', (field) => {
    const own = { toJSON: () => undefined }
    const inherited = Object.create(Object.assign(Object.create(null), own))
    for (const value of [own, inherited]) {
      const error = refusal('identify', { userId: 'u', [field]: value })
      expect(error).toBeInstanceOf(TypeError)
      expect(String(error)).toBe(
        `TypeError: identify: \`${field}\` must not have a toJSON method. Got an object. Pass plain data.`,
      )
    }
  })

  const throwing = (name: string) =>
    Object.defineProperty({}, name, {
      enumerable: true,
      get() {
        throw new Error('not now')
      },
    })

  test('a getter of the call that throws is a TypeError with its cause', () => {
    const error = refusal('track', throwing('userId'))

    expect(error).toMatchObject({ name: 'TypeError', cause: new Error('not now') })
  })

  test.each(['properties', 'traits', 'context', 'integrations'])(
    'a getter in %s that throws is a TypeError that names the field',
    (field) => {
      const error = refusal('identify', { userId: 'u', [field]: throwing('x') })
      expect(error).toMatchObject({ name: 'TypeError', cause: new Error('not now') })
      expect(String(error)).toMatch(new RegExp(`^TypeError: identify: \`${field}\` .*not now`))
    },
  )

  const circular: Record<string, unknown> = {}
  circular.self = circular
  let deep: unknown = 1
  for (let depth = 0; depth < 100_000; depth++) deep = [deep]
  const angry = {
    toJSON() {
      throw 'no'
    },
  }

  test.each([
    ['a BigInt', { n: 1n }, /BigInt/],
    ['a circle', circular, /circular/],
    ['too deep a nest', { deep }, /stack/],
    ['a toJSON that throws', { angry }, /a thrown string/],
  ])('%s is a TypeError that says so', (_name, properties, reason) => {
    const error = refusal('track', { userId: 'u', event: 'E', properties })
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).toMatch(/^TypeError: track: `properties` /)
    expect(String(error)).toMatch(reason)
    expect(error).toHaveProperty('cause')
  })
})

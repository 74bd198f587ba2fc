/** What each call takes and how it travels ("Go client library", Message types and Endpoints). */

import { describe, expect, it, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import type { Client } from '../../src/client.ts'
import { throwing } from '../support/throwing.ts'
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

function record(client: Client, method: Method, call: unknown): void {
  ;(client[method] as (call: unknown) => void)(call)
}

async function travel(method: Method, call: object): Promise<Record<string, unknown>> {
  const { client, requests, calls } = setUp([], { flushAt: 1 })
  record(client, method, call)
  await settle()
  expect(requests).toHaveLength(1)
  return calls()[0] as unknown as Record<string, unknown>
}

/** What is thrown by a call that is refused: a TypeError that names its method. */
function refusal(method: Method, call: unknown): Error {
  const { client } = setUp()
  try {
    record(client, method, call)
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).toMatch(new RegExp(`^TypeError: ${method}: `))
    return error as Error
  }
  return expect.fail('It was taken.')
}

describe('a call', () => {
  it.each(METHODS)(
    '%s · a timestamp travels in UTC with milliseconds and Z, whatever its form; without one, it is now',
    async (method) => {
      const travels = async (time: object) => (await travel(method, { ...COMPLETE[method], ...time })).timestamp

      expect(await travels({ timestamp: '2020-02-03T04:05:06+01:00' })).toBe('2020-02-03T03:05:06.000Z')
      expect(await travels({ timestamp: '2020-02-03T03:05:06.789999Z' })).toBe('2020-02-03T03:05:06.789Z')
      expect(await travels({ timestamp: new Date('2020-02-03') })).toBe('2020-02-03T00:00:00.000Z')
      expect(await travels({})).toBe(NOW)
    },
  )

  it('has a userId of null beside an anonymousId, and a library of its own', async () => {
    const call = { userId: null, anonymousId: 'a-1', context: { library: { name: 'mine' } } }
    expect(await travel('identify', call)).toMatchObject(call)
  })

  it.each(METHODS)('%s · is given its type, a random messageId, the time, and the library', async (method) => {
    const { version } = manifest

    expect(await travel(method, { ...COMPLETE[method], type: 'delete' })).toEqual({
      ...COMPLETE[method],
      type: method,
      messageId: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      timestamp: NOW,
      context: { library: { name: 'hookline', version } },
    })
  })

  it('alias · its ids may be there in the other spelling, too, empty or the same', async () => {
    const call = { userId: 'u', previousId: 'user-0', 'Previous ID': '', 'User ID': 'u' }
    expect(await travel('alias', call)).toMatchObject({ type: 'alias', previousId: 'user-0' })
  })

  it('has the time of the call, not of the flush', async () => {
    const { client, clock, calls } = setUp()
    for (const ms of [0, 1234, 0]) {
      client.identify({ userId: 'u' })
      await clock.advance(ms)
    }
    await client.flush()
    expect(calls().map(({ timestamp }) => timestamp)).toEqual([NOW, NOW, '2026-01-15T09:30:01.234Z'])
  })
})

describe('required fields, checked at the call', () => {
  const [user, track, alias] = [{ userId: 'u' }, { userId: 'u', event: 'E' }, { userId: 'u', previousId: 'p' }]
  it.each<[string, Method, object, string]>([
    ['Identify · one of UserId or AnonymousId', 'identify', {}, 'userId'],
    ['Identify · UserId is text', 'identify', { userId: 7, anonymousId: 'a' }, 'userId'],
    ['Identify · UserId is not empty', 'identify', { userId: '' }, 'userId'],
    ['Identify · AnonymousId is not empty', 'identify', { anonymousId: '' }, 'anonymousId'],
    ['Identify · Traits is an object', 'identify', { ...user, traits: [] }, 'traits'],
    ['Track · Event', 'track', user, 'event'],
    ['Track · Event is not empty', 'track', { ...user, event: '' }, 'event'],
    ['Track · one of UserId or AnonymousId', 'track', { event: 'E' }, 'userId'],
    ['Track · Properties is an object', 'track', { ...track, properties: 'x' }, 'properties'],
    ['Page · one of UserId or AnonymousId', 'page', { name: 'Home' }, 'userId'],
    ['Page · Category is text', 'page', { ...user, category: 7 }, 'category'],
    ['Page · Traits and properties', 'page', { ...user, traits: {}, properties: {} }, 'traits'],
    ['Page · Timestamp is ISO 8601', 'page', { ...user, timestamp: 'yesterday' }, 'timestamp'],
    ['Page · Context is an object', 'page', { ...user, context: 'x' }, 'context'],
    ['Screen · one of UserId or AnonymousId', 'screen', { name: 'Cart' }, 'userId'],
    ['Group · one of UserId or AnonymousId', 'group', { groupId: 'g' }, 'userId'],
    ['Group · GroupId', 'group', user, 'groupId'],
    ['Alias · UserId', 'alias', { previousId: 'p' }, 'userId'],
    ['Alias · PreviousId', 'alias', user, 'previousId'],
    ['Alias · an AnonymousId is no UserId', 'alias', { anonymousId: 'a', previousId: 'p' }, 'userId'],
    ['Alias · one PreviousId, in both spellings', 'alias', { ...alias, 'Previous ID': 'q' }, 'Previous ID'],
    ['any · MessageId is text', 'track', { ...track, messageId: 7 }, 'messageId'],
    ['any · Integrations is an object', 'track', { ...track, integrations: ['Webhooks'] }, 'integrations'],
    ['any · none has a toJSON, which would travel in its place', 'track', { ...track, toJSON() {} }, 'toJSON'],
    ['any · nor have its objects', 'track', { ...track, properties: { toJSON() {} } }, 'properties'],
  ])('%s', (_row, method, call, field) => {
    expect(refusal(method, call).message).toContain(`: \`${field}\` `)
  })

  it.each([undefined, null, 'user-1', [], new Date(), () => {}])('a call is a plain object, not %o', (call) => {
    refusal('identify', call)
  })

  it('a call or a field without a prototype, or of another realm, is plain', async () => {
    const bare = Object.assign(Object.create(null), { userId: 'u', event: 'E' })
    const foreign = Object.create(Object.create(null), { n: { value: 1, enumerable: true } })
    expect(await travel('track', bare)).toMatchObject({ event: 'E' })
    expect(await travel('track', { ...bare, properties: foreign })).toMatchObject({ event: 'E', properties: { n: 1 } })
  })
})

describe('a call is written down at once', () => {
  test('what the caller changes afterwards does not matter', async () => {
    const { client, calls } = setUp()
    const call = { userId: 'user-1', event: 'E', properties: { items: ['a'] } }

    client.track(call)
    call.properties.items.push('b')
    call.event = 'F'
    await client.flush()

    expect(calls()).toMatchObject([{ event: 'E', properties: { items: ['a'] } }])
  })

  test('a getter is asked once: what is checked is what travels', async () => {
    let asked = 0
    const get = () => (asked++ === 0 ? 'user-1' : 7)
    const call = Object.defineProperty({ event: 'E' }, 'userId', { enumerable: true, get })

    expect(await travel('track', call)).toMatchObject({ userId: 'user-1' })

    expect(asked).toBe(1)
  })

  const cause = new Error('not now')
  const broken = Object.defineProperty({}, 'userId', { enumerable: true, get: throwing(cause) })

  test('a getter of the call that throws is a TypeError with its cause', () => {
    expect(refusal('track', broken).cause).toBe(cause)
  })

  test.each([
    ['a BigInt', { n: 1n }],
    ['a getter that throws', broken],
  ])('%s in a field is a TypeError that names the field, with its cause', (_name, properties) => {
    const error = refusal('track', { userId: 'u', event: 'E', properties })
    expect(error.message).toContain(': `properties` ')
    expect(error.cause).toBeInstanceOf(Error)
  })
})

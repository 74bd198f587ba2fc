import { describe, expect, it } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { type Delivered, recorder, setUpCollector, writeKey } from '../support/collect.ts'

const NOW = '2026-01-15T09:30:00.000Z'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const who = { userId: 'user-1' }

async function deliver(call: object, batch: object = {}): Promise<Delivered> {
  const { post, destination } = setUpCollector()
  const answer = await post('/v1/batch', { batch: [call], ...batch })
  expect(answer.json).toEqual({ success: true, accepted: 1, refused: [] })
  expect(destination.messages).toHaveLength(1)
  return destination.messages[0] as Delivered
}

async function refuse(call: unknown, batch: object = {}): Promise<Delivered> {
  const { post, destination } = setUpCollector()
  const answer = await post('/v1/batch', { batch: [call], ...batch })
  expect(answer.json).toMatchObject({ success: true, accepted: 0, refused: [{ index: 0 }] })
  expect(destination.messages).toEqual([])
  return answer.json.refused[0]
}

describe('Go client library, Message types: each call, and the message it becomes', () => {
  const common = {
    version: 1,
    userId: 'user-1',
    timestamp: NOW,
    receivedAt: NOW,
    messageId: 'm',
    context: { ip: '192.0.2.1' },
  }
  const base = { ...who, messageId: 'm' }
  it.each<[string, object, object]>([
    ['Identify', { type: 'identify', traits: { plan: 'pro', logins: 5 } }, { traits: { plan: 'pro', logins: 5 } }],
    ['Track', { type: 'track', event: 'Sold', properties: { total: 1 } }, { event: 'Sold', properties: { total: 1 } }],
    [
      'Page',
      {
        type: 'page',
        name: 'Home',
        category: 'Docs',
        traits: { url: 'u', title: 't', referrer: 'r', path: 'p', own: 1 },
      },
      { name: 'Home', category: 'Docs', properties: { url: 'u', title: 't', referrer: 'r', path: 'p', own: 1 } },
    ],
    ['Page, with properties', { type: 'page', properties: { path: '/' } }, { properties: { path: '/' } }],
    [
      'Page, with both: properties win',
      { type: 'page', properties: { path: '/', title: 'a' }, traits: { path: '/old', url: 'u' } },
      { properties: { path: '/', title: 'a', url: 'u' } },
    ],
    [
      'Group',
      { type: 'group', groupId: 'g', traits: { 'Employee Count': 12 } },
      { groupId: 'g', traits: { 'Employee Count': 12 } },
    ],
    ['Alias', { type: 'alias', previousId: 'old' }, { 'Previous ID': 'old', 'User ID': 'user-1', previousId: 'old' }],
  ])('%s', async (_row, call, message) => {
    expect(await deliver({ ...base, ...call })).toEqual({ ...common, type: (call as Delivered).type, ...message })
  })

  it.each([fixtures.page, fixtures.screen, fixtures.identify, fixtures.track, fixtures.alias, fixtures.group])(
    '$type: every field of the delivered message goes through',
    async (message) => {
      expect(await deliver(message)).toMatchObject(message)
    },
  )

  it('fields that no document names go along, the write key never does', async () => {
    const call = { type: 'track', event: 'Sold', anonymousId: 'a', channel: 'browser', _metadata: { x: [1] } }
    const message = await deliver({ ...call, writeKey })
    expect(message).toMatchObject(call)
    expect(message).not.toHaveProperty('writeKey')
  })

  it('makes a random messageId where there is none', async () => {
    const first = await deliver({ ...who, type: 'page' })
    const second = await deliver({ ...who, type: 'page', messageId: null })
    expect([first.messageId, second.messageId]).toEqual([expect.stringMatching(UUID), expect.stringMatching(UUID)])
    expect(first.messageId).not.toBe(second.messageId)
  })
})

describe('Go client library, Message types: what is required', () => {
  it.each<[string, object, string | undefined]>([
    ['Identify by AnonymousId', { type: 'identify', anonymousId: 'a' }, undefined],
    ['Identify by neither', { type: 'identify' }, 'userId'],
    ['Track by AnonymousId', { type: 'track', event: 'e', anonymousId: 'a', userId: null }, undefined],
    ['Track by neither', { type: 'track', event: 'e' }, 'userId'],
    ['Track without Event', { type: 'track', ...who }, 'event'],
    ['Page by AnonymousId', { type: 'page', anonymousId: 'a' }, undefined],
    ['Page by neither', { type: 'page' }, 'userId'],
    ['Group by AnonymousId', { type: 'group', groupId: 'g', anonymousId: 'a' }, undefined],
    ['Group by neither', { type: 'group', groupId: 'g' }, 'userId'],
    ['Group without GroupId', { type: 'group', ...who }, 'groupId'],
    ['Alias with both', { type: 'alias', ...who, previousId: 'p' }, undefined],
    ['Alias without UserId', { type: 'alias', previousId: 'p', anonymousId: 'a' }, 'userId'],
    ['Alias without PreviousId', { type: 'alias', ...who }, 'previousId'],
    ['Alias in the spelling of messages', { type: 'alias', 'User ID': 'u', 'Previous ID': 'p' }, undefined],
    ['Alias with two previous ids', { type: 'alias', ...who, previousId: 'p', 'Previous ID': 'q' }, 'previousId'],
    ['Alias with two ids', { type: 'alias', ...who, previousId: 'p', 'User ID': 'user-2' }, 'userId'],
    ['UserId that is an object', { type: 'identify', userId: {} }, 'userId'],
    ['Traits that are a list', { type: 'identify', ...who, traits: [] }, 'traits'],
    ['Page properties that are text', { type: 'page', ...who, properties: 'abc', traits: {} }, 'properties'],
    ['AnonymousId that is a list', { type: 'identify', ...who, anonymousId: [] }, 'anonymousId'],
    ['messageId that is an object', { type: 'alias', ...who, previousId: 'p', messageId: {} }, 'messageId'],
    ['Context that is text', { type: 'page', ...who, context: 'abc' }, 'context'],
    ['Integrations that are a list', { type: 'page', ...who, integrations: ['Webhooks'] }, 'integrations'],
    ['no type', { ...who }, 'type'],
  ])('%s', async (_row, call, path) => {
    if (path === undefined) return expect(await deliver(call)).toMatchObject(JSON.parse(JSON.stringify(call)))
    const reason = await refuse(call)
    expect(reason).toMatchObject({ code: 'call_invalid', path })
    expect(reason.detail).toContain(path)
  })

  it.each(['delete', 'purchase', 'Track', 'batch', '__proto__', 5, null])('message_type_unknown: %j', async (type) => {
    expect(await refuse({ ...who, type })).toMatchObject({ code: 'message_type_unknown', path: 'type' })
  })

  it.each([
    [null, 'null'],
    [5, 'a number'],
    [[], 'an empty list'],
    [[[]], 'a list'],
  ])('a call that is %j', async (call, found) => {
    expect(await refuse(call)).toEqual({
      index: 0,
      code: 'call_invalid',
      detail: `A call must be a JSON object. Got ${found}. Send each call as an object.`,
    })
  })
})

describe('what real clients write in place of the documented form', () => {
  it.each<[string, object, object]>([
    ['an empty userId, as browsers send it of a visitor', { userId: '', anonymousId: 'a' }, { anonymousId: 'a' }],
    ['numeric ids', { userId: 5, anonymousId: 6, messageId: 7 }, { userId: '5', anonymousId: '6', messageId: '7' }],
    ['milliseconds', { ...who, timestamp: 1_768_469_400_000 }, { ...who, timestamp: '2026-01-15T09:30:00.000Z' }],
    ['seconds', { ...who, timestamp: 1_768_469_400 }, { ...who, timestamp: '2026-01-15T09:30:00.000Z' }],
  ])('%s', async (_what, call, read) => {
    const page = { type: 'page', messageId: 'm' }
    expect(await deliver({ ...page, ...call })).toEqual(await deliver({ ...page, ...read }))
  })
})

describe('null in place of an object is none', () => {
  it.each([
    ['traits', { type: 'identify', traits: null }],
    ['properties', { type: 'track', event: 'e', properties: null }],
    ['traits of a page', { type: 'page', traits: null, properties: { path: '/' } }],
    ['properties of a page', { type: 'page', properties: null, traits: { path: '/' } }],
    ['context', { type: 'page', context: null }],
    ['integrations', { type: 'page', integrations: null }],
  ])('%s', async (_row, call) => {
    const given = Object.fromEntries(Object.entries(call).filter(([, value]) => value !== null))
    const base = { ...who, messageId: 'm' }
    expect(await deliver({ ...base, ...call })).toEqual(await deliver({ ...base, ...given }))
  })
})

describe('Timestamp', () => {
  const page = { ...who, type: 'page' }

  it.each([
    ['defaults to server time', undefined, NOW],
    ['null is none', null, NOW],
    ['with the nanoseconds of Go', '2026-01-01T00:00:00.123456789Z', '2026-01-01T00:00:00.123Z'],
    ['a day, for a historical import', '2020-02-29', '2020-02-29T00:00:00.000Z'],
  ])('%s', async (_row, timestamp, delivered) => {
    expect(await deliver({ ...page, timestamp })).toMatchObject({ timestamp: delivered, receivedAt: NOW })
  })

  it.each(['yesterday', '2026-02-30', '', 1e15, {}])('%j is refused', async (timestamp) => {
    expect(await refuse({ ...page, timestamp })).toMatchObject({ code: 'call_invalid', path: 'timestamp' })
  })

  it('a call cannot say when it was received', async () => {
    expect(await deliver({ ...page, receivedAt: '1999-01-01T00:00:00.000Z' })).toMatchObject({ receivedAt: NOW })
  })

  it.each<[string, object, object, unknown]>([
    ['of the batch', {}, { sentAt: '2026-01-15T10:00:00+01:00' }, '2026-01-15T09:00:00.000Z'],
    ['of the call, before the batch', { sentAt: '2026-01-15T08:00:00Z' }, { sentAt: NOW }, '2026-01-15T08:00:00.000Z'],
    ['that is no time', {}, { sentAt: 'now' }, undefined],
    ['that is no time, of the call', { sentAt: 5 }, {}, undefined],
    ['of nobody', {}, {}, undefined],
  ])('sentAt %s', async (_row, call, batch, sentAt) => {
    expect((await deliver({ ...page, ...call }, batch)).sentAt).toBe(sentAt)
  })
})

describe('the fields of a batch', () => {
  const page = { ...who, type: 'page' }
  const batch = { context: { library: { name: 'go' }, ip: '198.51.100.1' }, integrations: { All: true } }

  it('are for its calls that have none of their own', async () => {
    expect(await deliver(page, batch)).toMatchObject(batch)
    expect(await deliver({ ...page, context: null, integrations: null }, batch)).toMatchObject(batch)
  })

  it('give way to those of a call', async () => {
    const own = { context: { ip: '198.51.100.2' }, integrations: { Webhooks: true } }
    const message = await deliver({ ...page, ...own }, batch)
    expect([message.context, message.integrations]).toEqual([own.context, own.integrations])
  })
})

describe('context.ip', () => {
  const page = { ...who, type: 'page' }
  const forwarded = { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.9, 203.0.113.7' }

  async function ipOf(call: object, options: object, changes: object): Promise<unknown> {
    const { post, destination } = setUpCollector(options)
    await post('/v1/page', { ...page, writeKey, ...call }, changes)
    const [message] = destination.messages as unknown as [{ context: Delivered }]
    return message.context.ip
  }

  const trusting = { ipHeader: 'X-Forwarded-For' }
  const shop = { name: 'shop', writeKey }
  const origin = { headers: { 'content-type': 'application/json', origin: 'https://shop.example' } }
  it.each<[string, string | undefined, object, object, string | undefined]>([
    ['a site', 'web', {}, {}, '192.0.2.1'],
    ['an app', 'mobile', {}, {}, '192.0.2.1'],
    ['a server', 'server', {}, {}, undefined],
    ['a server that sends an Origin', 'server', {}, origin, undefined],
    ['a source of any kind', undefined, {}, {}, undefined],
    ['a source of any kind, and a page of it', undefined, {}, origin, '192.0.2.1'],
  ])('of %s', async (_source, kind, call, changes, ip) => {
    const destination = recorder()
    const sources = [{ ...shop, ...(kind !== undefined && { kind }), destinations: [destination] }]
    const { post } = setUpCollector({ sources } as never)
    await post('/v1/page', { ...page, writeKey, ...call }, changes)
    const [message] = destination.messages as unknown as [{ context: Delivered }]
    expect(message.context.ip).toBe(ip)
  })

  it.each<[string, object, object, object, string | undefined]>([
    ['is the address of the connection', {}, {}, {}, '192.0.2.1'],
    ['is IPv4 where the server writes it as IPv6', {}, {}, { remoteAddress: '::ffff:192.0.2.5' }, '192.0.2.5'],
    ['is absent where the host does not know it', {}, {}, { remoteAddress: undefined }, undefined],
    ['is what the call says', { context: { ip: '198.51.100.4' } }, trusting, { headers: forwarded }, '198.51.100.4'],
    ['is not of a header that nobody vouches for', {}, {}, { headers: forwarded }, '192.0.2.1'],
    ['is the last entry of a trusted header', {}, trusting, { headers: forwarded }, '203.0.113.7'],
    ...[
      ['203.0.113.7:8080', '203.0.113.7'],
      ['[2001:db8::1]:8080', '2001:db8::1'],
      ['[::ffff:192.0.2.5]:80', '192.0.2.5'],
      ['2001:db8::1:80', '2001:db8::1:80'],
      ['2001:DB8:0:0::1', '2001:db8::1'],
      ['0:0:0:0:0:FFFF:192.0.2.5', '192.0.2.5'],
      ['fe80::1%eth0', 'fe80::1'],
      ['[203.0.113.7', undefined],
    ].map(([entry, ip]): [string, object, object, object, string | undefined] => [
      `is ${ip} where that header holds ${entry}`,
      {},
      trusting,
      { headers: { ...forwarded, 'x-forwarded-for': `198.51.100.9, ${entry}` } },
      ip,
    ]),
    ['is the connection where that header is absent', {}, trusting, {}, '192.0.2.1'],
    [
      'is absent where that header holds none',
      {},
      trusting,
      { headers: { ...forwarded, 'x-forwarded-for': 'unknown' } },
      undefined,
    ],
  ])('%s', async (_row, call, options, changes, ip) => {
    expect(await ipOf(call, options, changes)).toBe(ip)
  })
})

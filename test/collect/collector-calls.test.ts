import { describe, expect, it } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { type Delivered, recorder, setUpCollector, writeKey } from '../support/collect.ts'

const NOW = '2026-01-15T09:30:00.000Z'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const who = { userId: 'user-1' }
const page = { ...who, type: 'page', messageId: 'm' }

async function deliver(call: object, batch: object = {}): Promise<Delivered> {
  const { post, destination } = setUpCollector()
  const answer = await post('/v1/batch', { batch: [call], ...batch })
  expect(answer.json).toEqual({ success: true, accepted: 1, refused: [] })
  expect(destination.messages).toHaveLength(1)
  return destination.messages[0] as Delivered
}

async function refuse(call: unknown): Promise<Delivered> {
  const { post, destination } = setUpCollector()
  const answer = await post('/v1/batch', { batch: [call] })
  expect(answer.json).toMatchObject({ success: true, accepted: 0, refused: [{ index: 0 }] })
  expect(destination.messages).toEqual([])
  return answer.json.refused[0]
}

describe('a call becomes a message', () => {
  const home = { name: 'Home', category: 'Docs' }
  const traits = { url: 'u', title: 't', referrer: 'r', path: 'p', own: 1 }
  const old = { path: '/old', more: 2 }
  it.each<[string, Delivered, object]>([
    ['Identify', { type: 'identify', traits: { plan: 'pro' } }, { traits: { plan: 'pro' } }],
    ['Track', { type: 'track', event: 'Sold', properties: { total: 1 } }, { event: 'Sold', properties: { total: 1 } }],
    ['Page', { type: 'page', ...home, traits }, { ...home, properties: traits }],
    ['Page, with properties', { type: 'page', properties: { path: '/' } }, { properties: { path: '/' } }],
    [
      'Page, with both: properties win',
      { type: 'page', properties: traits, traits: old },
      { properties: { ...old, ...traits } },
    ],
    ['Group', { type: 'group', groupId: 'g', traits: { Size: 12 } }, { groupId: 'g', traits: { Size: 12 } }],
    ['Alias', { type: 'alias', previousId: 'old' }, { 'Previous ID': 'old', 'User ID': 'user-1', previousId: 'old' }],
  ])('%s', async (_row, call, fields) => {
    const times = { timestamp: NOW, receivedAt: NOW }
    const common = { version: 1, userId: 'user-1', messageId: 'm', context: { ip: '192.0.2.1' }, ...times }
    expect(await deliver({ ...who, messageId: 'm', ...call })).toEqual({ ...common, type: call.type, ...fields })
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

  it('with a random messageId where there is none', async () => {
    const call = { ...who, type: 'page' }
    const ids = [await deliver(call), await deliver(call)].map(({ messageId }) => messageId)
    expect(ids).toEqual([expect.stringMatching(UUID), expect.stringMatching(UUID)])
    expect(ids[0]).not.toBe(ids[1])
  })

  it.each<[string, object, object]>([
    ['an empty userId', { userId: '', anonymousId: 'a' }, { userId: undefined, anonymousId: 'a' }],
    ['numeric ids', { userId: 5, anonymousId: 6, messageId: 7 }, { userId: '5', anonymousId: '6', messageId: '7' }],
    ['milliseconds', { timestamp: 1_768_469_400_000 }, { timestamp: NOW }],
    ['null for traits of a page', { traits: null, properties: { path: '/' } }, { properties: { path: '/' } }],
    ['a day, for a historical import', { timestamp: '2020-02-29' }, { timestamp: '2020-02-29T00:00:00.000Z' }],
    ['when it was received', { receivedAt: '1999-01-01T00:00:00.000Z' }, { receivedAt: NOW }],
  ])('as if its clients had written the documented form: %s', async (_what, call, read) => {
    expect(await deliver({ ...page, ...call })).toEqual(await deliver({ ...page, ...read }))
  })
})

describe('a call is refused', () => {
  it.each<[string, unknown, string | undefined]>([
    ['that has no user', { type: 'identify' }, 'userId'],
    ['without an event', { type: 'track', ...who }, 'event'],
    ['without a groupId', { type: 'group', ...who }, 'groupId'],
    ['without an id of an alias', { type: 'alias', previousId: 'p', anonymousId: 'a' }, 'userId'],
    ['with two previous ids', { type: 'alias', ...who, previousId: 'p', 'Previous ID': 'q' }, 'previousId'],
    ['whose traits are a list', { type: 'identify', ...who, traits: [] }, 'traits'],
    ['whose properties are text', { ...page, properties: 'abc', traits: {} }, 'properties'],
    ['whose userId is an object', { ...page, userId: {} }, 'userId'],
    ['whose messageId is an object', { ...page, messageId: {} }, 'messageId'],
    ['whose context is text', { ...page, context: 'abc' }, 'context'],
    ['whose integrations are a list', { ...page, integrations: ['Webhooks'] }, 'integrations'],
    ['of no type', who, 'type'],
    ['at no time', { ...page, timestamp: '2026-02-30' }, 'timestamp'],
    ['that is no object', [[]], undefined],
  ])('%s', async (_row, call, path) => {
    const reason = { code: 'call_invalid', detail: expect.stringContaining(path ?? ''), ...(path && { path }) }
    expect(await refuse(call)).toMatchObject(reason)
  })

  it.each(['delete', 'batch', '__proto__', 5])('of the unknown type %j', async (type) => {
    expect(await refuse({ ...who, type })).toMatchObject({ code: 'message_type_unknown', path: 'type' })
  })
})

describe('the fields of a batch', () => {
  const batch = { context: { library: { name: 'go' }, ip: '198.51.100.1' }, integrations: { All: true } }

  it('are for its calls that have none of their own', async () => {
    expect(await deliver(page, batch)).toMatchObject(batch)
    expect(await deliver({ ...page, context: null, integrations: null }, batch)).toMatchObject(batch)
  })

  it('give way to those of a call', async () => {
    const own = { context: { ip: '198.51.100.2' }, integrations: { Webhooks: true } }
    const { context, integrations } = await deliver({ ...page, ...own }, batch)
    expect({ context, integrations }).toEqual(own)
  })

  it.each<[string, object, object, unknown]>([
    ['of the batch', {}, { sentAt: '2026-01-15T10:00:00+01:00' }, '2026-01-15T09:00:00.000Z'],
    ['of the call, before the batch', { sentAt: '2026-01-15T08:00:00Z' }, { sentAt: NOW }, '2026-01-15T08:00:00.000Z'],
    ['that is no time', {}, { sentAt: 'now' }, undefined],
  ])('sentAt %s', async (_row, call, batch, sentAt) => {
    expect((await deliver({ ...page, ...call }, batch)).sentAt).toBe(sentAt)
  })
})

describe('context.ip', () => {
  async function ipOf(source: object, options: object, headers: object, call: object = {}, changes: object = {}) {
    const destination = recorder()
    const sources = [{ name: 'shop', writeKey, destinations: [destination], ...source }]
    const { post } = setUpCollector({ sources, ...options })
    const given = { headers: { 'content-type': 'application/json', ...headers }, ...changes }
    expect((await post('/v1/page', { ...page, writeKey, ...call }, given)).status).toBe(200)
    return (destination.messages[0] as { readonly context: Delivered }).context.ip
  }

  const origin = { origin: 'https://shop.example' }
  it.each<[string, object, object, string | undefined]>([
    ['a site', { kind: 'web' }, {}, '192.0.2.1'],
    ['an app', { kind: 'mobile' }, {}, '192.0.2.1'],
    ['a server', { kind: 'server' }, {}, undefined],
    ['a source of any kind', {}, {}, undefined],
    ['a source of any kind, and a page of it', {}, origin, '192.0.2.1'],
  ])('of %s', async (_source, source, headers, ip) => {
    expect(await ipOf(source, {}, headers)).toBe(ip)
  })

  const options = { ipHeader: 'X-Forwarded-For' }
  it.each<[string, object, object, object, string | undefined]>([
    ['IPv4 where the server writes it as IPv6', {}, {}, { remoteAddress: '::ffff:192.0.2.5' }, '192.0.2.5'],
    ['absent where the host does not know it', {}, {}, { remoteAddress: undefined }, undefined],
    ['what the call says', { 'x-forwarded-for': '203.0.113.7' }, { context: { ip: '::4' } }, {}, '::4'],
    ['the connection where the header is absent', {}, {}, {}, '192.0.2.1'],
  ])('is %s', async (_rule, headers, call, changes, ip) => {
    expect(await ipOf({ kind: 'web' }, options, headers, call, changes)).toBe(ip)
  })

  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:8080', '203.0.113.7'],
    ['[2001:db8::1]:8080', '2001:db8::1'],
    ['[::ffff:192.0.2.5]:80', '192.0.2.5'],
    ['2001:DB8:0:0::1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['unknown', undefined],
  ])('where the last entry of the header is %s, is %s', async (entry, ip) => {
    const headers = { 'x-forwarded-for': `198.51.100.9, ${entry}` }
    expect(await ipOf({ kind: 'web' }, options, headers)).toBe(ip)
  })

  it('is not of a header that nobody vouches for', async () => {
    expect(await ipOf({ kind: 'web' }, {}, { 'x-forwarded-for': '203.0.113.7' })).toBe('192.0.2.1')
  })
})

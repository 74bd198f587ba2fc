import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HooklineError, kindOf } from '../../src/protocol/error.ts'
import { parse } from '../../src/protocol/parse.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { runs } from '../support/properties.ts'

const bytesOf = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))

function errorOf(body: Uint8Array): HooklineError {
  try {
    parse(body)
  } catch (error) {
    if (error instanceof HooklineError) return error
    throw error
  }
  throw new Error('parsed without an error')
}

describe('messages', () => {
  it.each(Object.values(fixtures))('$type: every field stays, of the specification or not', (message) => {
    const given = { ...message, _metadata: { bundled: [] } }
    expect(parse(bytesOf(given))).toMatchObject(given)
  })

  it('skips a byte order mark', () => {
    expect(parse(bytesOf(`\ufeff${JSON.stringify(fixtures.track)}`))).toEqual(fixtures.track)
  })

  it.each([
    ['with spaces', { 'Previous ID': 'old', 'User ID': 'new' }],
    ['without', { previousId: 'old', userId: 'new' }],
    ['mixed', { 'Previous ID': 'old', userId: 'new' }],
    ['both', { 'Previous ID': 'old', 'User ID': 'new', previousId: 'old', userId: 'new' }],
    ['both, one of them empty', { 'Previous ID': '', 'User ID': 'new', previousId: 'old', userId: '' }],
  ])('reads the ids of an alias the same, spelled %s', (_how, ids) => {
    const both = { 'Previous ID': 'old', 'User ID': 'new', previousId: 'old', userId: 'new' }
    expect(parse(bytesOf({ type: 'alias', ...ids }))).toEqual({ type: 'alias', ...both })
  })
})

describe('what real senders write in place of the documented form', () => {
  const event = { type: 'track', event: 'Product Viewed', properties: { price: 12 } }
  const visitor = { ...event, channel: 'web', anonymousId: 'a-1', integrations: { All: true } }

  it.each<[string, object, object]>([
    ['an empty userId, as browsers send it of a visitor', { userId: '' }, {}],
    ['other ids that are empty', { userId: 'u', anonymousId: '' }, { userId: 'u', anonymousId: undefined }],
    ['a null id beside another', { userId: null, anonymousId: 'a' }, { userId: null, anonymousId: 'a' }],
    ['numeric ids', { userId: 815, anonymousId: 0, messageId: 7 }, { userId: '815', anonymousId: '0', messageId: '7' }],
    ['a numeric groupId', { type: 'group', userId: 1, groupId: 2 }, { type: 'group', userId: '1', groupId: '2' }],
    [
      'numeric ids of an alias',
      { type: 'alias', previousId: 1, 'User ID': 2 },
      { type: 'alias', previousId: '1', 'Previous ID': '1', userId: '2', 'User ID': '2' },
    ],
    ['a numeric userId to delete', { type: 'delete', userId: 815 }, { type: 'delete', userId: '815' }],
    ['null for an object', { context: null, properties: null, timestamp: null }, { properties: undefined }],
    ['null for integrations', { integrations: null }, { integrations: undefined }],
    ['milliseconds', { timestamp: 1_768_469_400_123 }, { timestamp: '2026-01-15T09:30:00.123Z' }],
    ['seconds', { timestamp: 1_768_469_400.5 }, { timestamp: '2026-01-15T09:30:00.500Z' }],
  ])('%s', (_what, sent, read) => {
    const expected = JSON.parse(JSON.stringify({ ...visitor, ...read }))
    expect(parse(bytesOf({ ...visitor, ...sent }))).toStrictEqual(expected)
    expect(parse(bytesOf(expected))).toStrictEqual(expected)
  })

  it.each([
    ['-0', '0'],
    ['1e3', '1000'],
    ['9007199254740991', '9007199254740991'],
  ])('an id of %s is %s', (number, id) => {
    expect(parse(bytesOf(`{"type":"page","userId":${number}}`)).userId).toBe(id)
  })

  it.each(['9007199254740993', '1234567890123456789', '1e21', '1e400'])('refuses %s: it has lost digits', (number) => {
    expect(errorOf(bytesOf(`{"type":"delete","userId":${number}}`)).path).toBe('userId')
  })
})

describe('body_not_json', () => {
  it.each(['', '{"type":', '[]', '5', `${'['.repeat(250_000)}${']'.repeat(250_000)}`])('%.12s', (body) => {
    expect(errorOf(bytesOf(body))).toMatchObject({ code: 'body_not_json', status: 400 })
  })

  it('says where, and quotes nothing of the body', () => {
    const error = errorOf(bytesOf('{"password":"hunter2" x}'))
    expect(error.message).toContain('24 bytes, with an error at position 22')
    expect(error.cause).toBeUndefined()
    expect(String(error.stack)).not.toContain('hunter2')
  })

  it('refuses bytes that are not UTF-8', () => {
    expect(errorOf(Buffer.from('{"a":"\xff"}', 'latin1')).message).toContain('UTF-8')
  })
})

const { page, screen, identify, track, alias, group, delete: deletion } = fixtures

describe('message_invalid names the field', () => {
  it.each([
    ['type', {}],
    ['userId', { ...page, userId: undefined }],
    ['userId', { ...page, userId: ['hunter2'] }],
    ['userId', { ...screen, userId: null }],
    ['userId', { ...identify, userId: '' }],
    ['userId', { ...deletion, userId: '', anonymousId: 'a' }],
    ['event', { ...track, event: undefined }],
    ['groupId', { ...group, groupId: null }],
    ['Previous ID', { type: 'alias', userId: 'new' }],
    ['User ID', { type: 'alias', previousId: 'old' }],
    ['User ID', { ...alias, 'User ID': '', userId: '' }],
    ['Previous ID', { ...alias, 'Previous ID': false }],
    ['timestamp', { ...track, timestamp: 8.64e15 }],
    ['timestamp', { ...track, timestamp: ['hunter2'] }],
    ['properties', { ...track, properties: [] }],
    ['context', { ...screen, context: 'hunter2' }],
  ])('%s of %j', (path, message) => {
    const error = errorOf(bytesOf(message))
    expect([error.code, error.status, error.path]).toEqual(['message_invalid', 422, path])
    expect(error.message).toMatch(new RegExp(`^\`${path}\` must be [^]+\\. Got [^]+\\. Pass [^]+\\.$`))
    expect(error.message).not.toContain('hunter2')
  })

  it.each([
    ['Previous ID', 'previousId', 'another'],
    ['User ID', 'userId', 'another'],
    ['User ID', 'userId', 0],
  ])('%s of an alias and another %s: %j', (spaced, plain, value) => {
    const error = errorOf(bytesOf({ ...alias, [plain]: value }))
    expect([error.code, error.path]).toEqual(['message_invalid', spaced])
    expect(error.message).not.toContain('another')
  })

  it.each(['purchase', 'Track', 'constructor', '__proto__', 5, null])('message_type_unknown: %j', (type) => {
    const error = errorOf(bytesOf({ type, userId: 'u' }))
    expect([error.code, error.status, error.path]).toEqual(['message_type_unknown', 422, 'type'])
    expect(error.message).toContain(`Got ${typeof type === 'string' ? `'${type}'` : kindOf(type)}. `)
  })

  it('shows the beginning of an unknown type, escaped', () => {
    const type = `a\u009b31m\n\u202eb${'🎉'.repeat(90)}`
    const { message } = errorOf(bytesOf({ type, userId: 'u' }))
    expect(message).toContain(`Got 'a\\u{9b}31m\\u{a}\\u{202e}b${'🎉'.repeat(32)}…'. `)
  })
})

describe('hostile keys', () => {
  it.each([
    '{"type":"track","userId":"u","event":"e","properties":{"__proto__":{"admin":true},"total":1}}',
    '{"type":"track","userId":"u","event":"e","properties":{"__\\u0070roto__":{"admin":true},"total":1}}',
    '{"type":"track","userId":"u","event":"e","properties":{"constructor":{"prototype":{"admin":true}},"total":1}}',
  ])('drops them wherever they stand: %s', (body) => {
    const { properties = {} } = parse(bytesOf(body)) as { properties?: Record<string, unknown> }
    expect(properties.total).toBe(1)
    expect(Object.hasOwn(properties, '__proto__')).toBe(false)
    if (Object.hasOwn(properties, 'constructor')) expect(properties.constructor).toEqual({})
  })

  it('drops them below more levels than the stack has', () => {
    const depth = 50_000
    const nested = `${'{"a":'.repeat(depth)}{"__proto__":{"admin":true}}${'}'.repeat(depth)}`
    let value: unknown = parse(bytesOf(`{"type":"track","userId":"u","event":"e","properties":${nested}}`))
    for (const key of ['properties', ...Array<string>(depth).fill('a')]) value = (value as Record<string, unknown>)[key]
    expect(Object.getOwnPropertyNames(value)).toEqual([])
  })

  it('keeps values of those names, and keys that are harmless', () => {
    const message = { ...track, event: '__proto__', properties: { constructor: 'Lego' } }
    expect(parse(bytesOf(message))).toEqual(message)
  })
})

it('throws nothing but its own error, and nothing appears on Object.prototype, for any JSON', () => {
  const hostile = fc.constantFrom('__proto__', 'constructor', 'prototype', 'type', 'userId', 'properties', 'toString')
  const values = [fc.constantFrom(null, true, 0, 'track', 'alias', 'admin'), fc.string()]
  const json = fc.object({ key: fc.oneof(hostile, fc.string()), values, maxKeys: 5, depthSize: 'small' })

  const before = Object.getOwnPropertyNames(Object.prototype).sort()
  fc.assert(
    fc.property(json, (value) => {
      try {
        parse(Buffer.from(JSON.stringify(value)))
      } catch (error) {
        expect(error).toBeInstanceOf(HooklineError)
      }
      expect(Object.getOwnPropertyNames(Object.prototype).sort()).toEqual(before)
      expect(({} as { admin?: unknown }).admin).toBeUndefined()
    }),
    { numRuns: runs(300) },
  )
})

it('refuses text: bytes are what was signed', () => {
  for (const body of ['{}', {}, [1]]) expect(() => parse(body as never)).toThrow(TypeError)
})

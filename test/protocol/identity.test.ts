import { describe, expect, it } from 'vitest'
import { matchUser, usersIn } from '../../src/protocol/identity.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { expectRefusal } from '../support/refusal.ts'

const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))

describe('a message is about a user', () => {
  it.each(Object.values(fixtures).filter(({ type }) => type !== 'delete'))('by its userId: $type', (message) => {
    expect(matchUser('user-1')(bytes(message))).toBe(true)
    expect(matchUser('user-2')(bytes(message))).toBe(false)
    expect(matchUser(['user-2', 'user-1'])(bytes(message))).toBe(true)
  })

  it.each([
    ['an anonymousId', { userId: null, anonymousId: 'ada' }],
    ['the previous id of an alias, as it is sent', { type: 'alias', 'Previous ID': 'ada', 'User ID': 'x' }],
    ['the previous id of an alias, as libraries write it', { type: 'alias', previousId: 'ada', userId: 'x' }],
    ['the new id of an alias', { type: 'alias', 'Previous ID': 'x', 'User ID': 'ada' }],
    ['an id that is written with escapes', '{"type":"track","userId":"\\u0061da"}'],
    ['an id in a message that is not valid', { userId: 'ada', type: 'unknown' }],
    ['a byte order mark before it', `\ufeff${JSON.stringify({ userId: 'ada' })}`],
    ['an element of a batch', [{ userId: 'x' }, { userId: 'ada' }]],
    ['a call of a batch request', { batch: [{ userId: 'x' }, { userId: 'ada' }] }],
  ])('by %s', (_what, message) => {
    expect(matchUser('ada')(bytes(message))).toBe(true)
  })

  it.each([
    ['a group of that name', { type: 'group', userId: 'x', groupId: 'ada' }],
    ['an id that only begins so', { type: 'page', userId: 'ada2' }],
    ['a delete of a batch request', { batch: [{ type: 'delete', userId: 'ada' }] }],
    ['a delete, which carries the request', { type: 'delete', userId: 'ada' }],
    ['what is no JSON', '{"userId":"ada"'],
    ['an id that is no string', { userId: ['ada'] }],
    ['an id of an object within', { order: { userId: 'ada' } }],
  ])('not by %s', (_what, message) => {
    expect(matchUser('ada')(bytes(message))).toBe(false)
  })

  it('by an id that is a number', () => {
    expect(matchUser('815')(bytes({ userId: 815 }))).toBe(true)
    expect(matchUser('81')(bytes({ userId: 815 }))).toBe(false)
    expect(matchUser('1234567890123456800')(bytes('{"userId":1234567890123456789}'))).toBe(false)
  })

  it('only by an id that it has: not by an empty one, nor by null', () => {
    const visitor = { type: 'page', userId: '', anonymousId: 'ada', previousId: null }
    expect(usersIn(bytes(visitor))).toEqual(['ada'])
  })

  it('whose bytes are a part of others', () => {
    const whole = Buffer.from(`xx${JSON.stringify({ userId: 'ada' })}xx`)
    expect(matchUser('ada')(new Uint8Array(whole.buffer, whole.byteOffset + 2, whole.length - 4))).toBe(true)
  })
})

it.each([undefined, '', [], 5, ['ada', ''], ['ada', undefined], { userId: 'ada' }])(
  'refuses the ids %j',
  async (ids) => {
    await expectRefusal(() => matchUser(ids as never), '`ids`')
  },
)

import { describe, expect, it } from 'vitest'
import { HooklineError, type MessageType, parse } from '../../src/index.ts'
import { compose, serialise } from '../../src/protocol/compose.ts'
import { isMessageType } from '../../src/protocol/type-table.ts'
import type { Calls } from '../../src/sender.ts'
import { fixtures } from '../../src/testing.ts'

const NOW = Date.UTC(2026, 0, 15, 9, 30)
const timestamp = '2026-01-15T09:30:00.000Z'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const calls: { readonly [Type in MessageType]: Calls[Type] } = {
  page: { userId: 'u' },
  screen: { anonymousId: 'a' },
  identify: { userId: 'u' },
  track: { userId: 'u', event: 'Sold' },
  alias: { userId: 'u', previousId: 'p' },
  group: { userId: 'u', groupId: 'g' },
  delete: { userId: 'u' },
}
const types = Object.keys(calls).filter(isMessageType)

describe('Outbound event delivery, Delivered message fields', () => {
  it.each(types.filter((type) => type !== 'delete'))('%s: what the call lacks is filled in', (type) => {
    const filled = { version: 1, type, timestamp, messageId: expect.stringMatching(UUID), context: {} }
    expect(compose(type, calls[type], NOW)).toMatchObject({ ...filled, ...calls[type] })
  })

  it('delete: its three fields, and none beyond', () => {
    const call = { userId: 'u', messageId: 'm', context: {}, version: 1, anonymousId: 'a' }
    expect(compose('delete', call, NOW)).toEqual({ type: 'delete', userId: 'u', timestamp })
  })

  it('alias: both spellings here, the specified one on the wire', () => {
    const message = compose('alias', calls.alias, NOW)
    expect(message).toMatchObject({ previousId: 'p', userId: 'u', 'Previous ID': 'p', 'User ID': 'u' })
    const wire = JSON.parse(serialise(message).toString())
    expect(wire).toMatchObject({ 'Previous ID': 'p', 'User ID': 'u', userId: 'u' })
    expect(wire).not.toHaveProperty('previousId')
  })

  it.each(types)('%s: what is serialised is read as the same message', (type) => {
    const message = compose(type, fixtures[type], NOW)
    expect(parse(serialise(message))).toEqual(message)
  })
})

describe('what a caller gives', () => {
  it('stays, but a version and a type', () => {
    const known = { messageId: 'm', context: { ip: '192.0.2.1' }, integrations: { All: false } }
    const call = { ...calls.track, ...known, channel: 'x', version: 2, type: 'delete' }
    expect(compose('track', call, NOW)).toEqual({ ...call, version: 1, type: 'track', timestamp })
  })

  it.each([
    [new Date('2025-12-31T23:00:00Z'), '2025-12-31T23:00:00.000Z'],
    ['2026-01-01T00:00:00+01:00', '2025-12-31T23:00:00.000Z'],
    [undefined, timestamp],
  ])('timestamp %j', (given, delivered) => {
    for (const type of types) {
      const message = compose(type, { ...calls[type], timestamp: given }, NOW)
      expect(JSON.parse(String(serialise(message))).timestamp).toBe(delivered)
    }
  })
})

describe('message_invalid names the field', () => {
  it.each<[string, MessageType, object]>([
    ['timestamp', 'track', { ...calls.track, timestamp: 'yesterday' }],
    ['timestamp', 'delete', { userId: 'u', timestamp: 5 }],
    ['userId', 'delete', { anonymousId: 'a' }],
    ['event', 'track', { userId: 'u' }],
    ['Previous ID', 'alias', { userId: 'u' }],
    ['properties', 'page', { userId: 'u', properties: { toJSON: () => 5 } }],
    ['integrations', 'page', { userId: 'u', integrations: new Date() }],
    ['toJSON', 'page', { userId: 'u', toJSON: () => 5 }],
  ])('%s of %s %j', (path, type, call) => {
    const make = () => compose(type, call, NOW)
    expect(make).toThrow(HooklineError)
    expect(make).toThrow(expect.objectContaining({ code: 'message_invalid', path }))
  })
})

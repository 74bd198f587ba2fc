/** What an inspector keeps in memory: bounds, order, changes, forgetting, secrets. */

import { gzipSync } from 'node:zlib'
import { manualClock } from 'hookline/testing'
import { expect, it, vi } from 'vitest'
import { addStep, describeMessage, type LoggedHead, setBody } from '../src/logged-message.ts'
import { keptBy } from './support.ts'

function setUp(keep = {}) {
  const clock = manualClock()
  const { journal, rows } = keptBy(clock, keep)
  const add = (bytes: string | Uint8Array, given: Partial<LoggedHead> = {}) => {
    const entry = journal.addMessage('shop', { kind: 'received', at: clock.now(), deliveryId: String(bytes), ...given })
    setBody(entry, typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
    journal.update(entry)
    return entry
  }
  const ids = () => rows().map(({ id }) => id)
  return { clock, journal, add, ids }
}

const collected = { kind: 'collected' } as const
const refused = { isRefused: true, deliveryId: undefined } as const

it('keeps the newest, and refused requests push no messages out', () => {
  const { add, ids, journal } = setUp({ messages: 3, refused: 2 })
  for (const each of ['a', 'b', 'c', 'd']) add(each)
  for (let index = 0; index < 9; index += 1) add('forged', refused)
  expect(ids()).toEqual([13, 12, 4, 3, 2])
  expect(['a', 'b', 'c', 'd'].map((id) => journal.find('shop', id)?.id)).toEqual([undefined, 2, 3, 4])
})

it('keeps at most so many bytes, but one message, however large it is', () => {
  const { journal, add, ids } = setUp({ bytes: 1_000_000 })
  for (let index = 0; index < 5; index += 1) journal.update(add(String(index).repeat(400_000)))
  expect(ids()).toEqual([5, 4])
  add('x'.repeat(2_000_000))
  expect(ids()).toEqual([6])
})

it.each<[string, object]>([
  ['trees', { userId: Array(3_000).fill([1]), anonymousId: { a: Array(3_000).fill({}) } }],
  ['many', { userId: 'a', batch: Array.from({ length: 1_500 }, (_, index) => ({ userId: `user-${index}` })) }],
  ['long texts', { userId: 'u'.repeat(30_000) }],
])('keeps little of the users of a refused call: %s', (_, message) => {
  const entry = setUp().add(JSON.stringify(message), collected)
  describeMessage(entry, { type: 'custom', body: message })
  expect(JSON.stringify(entry.users ?? []).length).toBeLessThan(250)
})

it('counts the ids of users and the paths that it keeps', () => {
  const { add, ids, journal } = setUp({ bytes: 1_000_000 })
  const users = Array.from({ length: 50 }, (_, index) => `${index}`.padEnd(200, 'u'))
  for (let index = 0; index < 100; index += 1) {
    const entry = Object.assign(add(''), { users, path: 'p'.repeat(10_000) })
    journal.update(entry)
  }
  expect(ids().length).toBeLessThanOrEqual(50)
})

it('forgets a user whose id is longer than what is kept of it', () => {
  const { add, journal, ids } = setUp()
  const userId = 'u'.repeat(300)
  const entry = add('')
  describeMessage(entry, { type: 'page', userId })
  expect([journal.forget(userId), ids()]).toEqual([1, []])
})

it('lists what changed since a version once, the newest first, and calls listeners', () => {
  const { journal, add } = setUp()
  let calls = 0
  const stop = journal.onChange(() => (calls += 1))
  const [first, , third] = [add('a'), add('b'), add('c')]
  expect(calls).toBe(3)
  const { version } = journal.changesSince(undefined)
  for (let index = 0; index < 10; index += 1) journal.update(first as never)
  journal.update(third as never)
  journal.update(first as never)
  expect(calls).toBe(15)
  expect(journal.changesSince(version)).toMatchObject({ isReset: false, rows: [{ id: 3 }, { id: 1 }] })
  expect(journal.changesSince(journal.changesSince(version).version).rows).toEqual([])
  expect(journal.changesSince(1_000).isReset).toBe(true)
  stop()
  add('d')
  expect(calls).toBe(15)
})

it('forgets a user, in each call of a batch, however deep one nests; a page begins anew', () => {
  const { journal, add, ids } = setUp()
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  add('{"type":"track","userId":"user-1"}')
  add('{"type":"track","userId":"user-2"}')
  add('{"batch":[{"userId":"user-2"},{"anonymousId":"user-1"}]}', collected)
  add(`{"batch":[{"userId":"user-1","properties":{"a":${deep}}}]}`, collected)
  const { version } = journal.changesSince(undefined)

  expect(journal.forget('user-1')).toBe(3)

  expect(journal.changesSince(version).isReset).toBe(true)
  expect(ids()).toEqual([2])
})

it('remembers for ten minutes whom it forgot, the latest 1 000 times, for what arrived before; by source, if one is named', async () => {
  const { clock, journal, add, ids } = setUp()
  const [at, body] = [clock.now(), Buffer.from('{"userId":"gone"}')]
  for (const source of ['shop', undefined]) Object.assign(add(body, { deliveryId: source }), { source })
  const known = (source?: string, arrivedAt = at, bytes = body) => journal.isForgotten(arrivedAt, bytes, source)
  expect([journal.forget('gone', 'shop'), ids()]).toEqual([1, [2]])
  expect([known('shop'), known('blog'), known()]).toEqual([true, false, false])
  expect([known('shop', at + 1), known('shop', at, Buffer.from('{"userId":"stays"}'))]).toEqual([false, false])
  await clock.advance(599_999)
  expect([known('shop'), journal.forget('nobody'), journal.forget('gone')]).toEqual([true, 0, 1])
  await clock.advance(1)
  expect([known('shop', at + 599_999), known(), known('shop', at + 600_000)]).toEqual([true, true, false])
  const stays = Array.from({ length: 1_000 }, (_, count) => [journal.forget(`user-${count}`), known()][1])
  expect([stays.indexOf(false), stays.length]).toEqual([999, 1_000])
})

it('marks as waiting what was redriven, unless it has failed again since, and as not stored what was dropped', () => {
  const { clock, journal, add } = setUp()
  const [at, failed] = [clock.now(), { state: 'dead', code: 'refused', isStored: true, endedAt: clock.now() } as const]
  const change = (what: 'redriven' | 'dropped', later: object, versions = 0) => {
    const entry = Object.assign(add('a'), failed, later)
    journal.changed('shop', ['unknown', 'a'], what, at, journal.version - versions)
    return [entry.state, entry.code, journal.detail(entry.id)?.isStored, entry.steps]
  }
  const [redriven, dropped] = (['redriven', 'dropped'] as const).map((what) => [{ at, what }])
  expect(change('redriven', {})).toEqual(['waiting', undefined, true, redriven])
  expect(change('redriven', { endedAt: at - 1 }, 1)).toEqual(['waiting', undefined, true, redriven])
  expect(change('redriven', {}, 1)).toEqual(['dead', 'refused', true, redriven])
  expect(change('redriven', { endedAt: at + 1 })).toEqual(['dead', 'refused', true, redriven])
  expect(change('redriven', { state: 'done' })).toEqual(['done', 'refused', true, redriven])
  expect(change('dropped', {})).toEqual(['dead', 'refused', false, dropped])
})

it('parses no more than 250 KB to forget a user: what is left over, and may be about the user, goes too', () => {
  const { journal, add, ids } = setUp({ messages: 100 })
  const text = (of: string) => JSON.stringify({ batch: [{ userId: of, name: `\n${'é'.repeat(49_000)}` }] })
  for (let index = 0; index < 10; index += 1) add(text('user-2'), collected)
  add('{"userId":"user-2"}', collected)
  const parse = vi.spyOn(JSON, 'parse')
  const count = journal.forget('user-1')
  const parsed = parse.mock.calls.reduce((sum, [json]) => sum + Buffer.byteLength(json), 0)
  parse.mockRestore()
  expect([parsed <= 250_000, count, ids().length]).toEqual([true, 8, 3])
})

it.each([
  ['{"writeKey":"k-1","batch":[{"writeKey" : "k-1"}]}', '{"writeKey":"…","batch":[{"writeKey" : "…"}]}'],
  [String.raw`{"\u0077rite\u004bey":"k-1"}`, String.raw`{"\u0077rite\u004bey":"…"}`],
  ['{"writeKey":"k-1', undefined],
  ['{"writeKey" : {"a":"k-1"}}', undefined],
  ['{"writeKey":["x","k-1"]}', undefined],
  [String.raw`{"raw":"{\"writeKey\":\"k-1\"}","event":"x"}`, '{"raw":"…","event":"x"}'],
  ['{"url":"https://shop.example/?writeKey=k-1"}', '{"url":"…"}'],
  [String.raw`"{\"write\u004bey\":\"k-1\"}"`, '"…"'],
  ['{"write_key":"k-1","WriteKey":"k-1","write-key":"k-1"}', '{"write_key":"…","WriteKey":"…","write-key":"…"}'],
])('shows no write key of %s', (body, text) => {
  const { journal, add } = setUp()
  expect(journal.detail(add(body, collected).id)?.body).toEqual({ size: body.length, text })
})

it('shows no write key of a message either, and all else of what is no JSON', () => {
  const { journal, add } = setUp()
  const bodyOf = (text: string) => journal.detail(add(text).id)?.body
  expect(bodyOf('{"context":{"writeKey":"k-1"}}')).toMatchObject({ text: '{"context":{"writeKey":"…"}}' })
  expect(bodyOf('{"event":"write')).toEqual({ size: 15, text: '{"event":"write' })
})

it.each([
  ['in another encoding', 'text', Buffer.from('{"writeKey":"k-1"}', 'utf16le')],
  ['compressed', 'base64', gzipSync('{"writeKey":"k-1"}')],
])('shows no write key %s, but shows a message so', (_how, shown, bytes) => {
  const { journal, add } = setUp()
  const bodyOf = (given = {}) => journal.detail(add(bytes, given).id)?.body
  expect(bodyOf(collected)).toEqual({ size: bytes.length })
  expect(bodyOf()).toMatchObject({ size: bytes.length, [shown]: expect.any(String) })
})

it('of too many steps it keeps the first 10 and the last 90', () => {
  const { journal, add } = setUp()
  const entry = add('a')
  for (let at = 0; at < 500; at += 1) addStep(entry, { at, what: 'queued' })
  const times = journal.detail(entry.id)?.steps.map(({ at }) => at) ?? []
  expect([times.length, times[9], times[10], times.at(-1)]).toEqual([100, 9, 410, 499])
})

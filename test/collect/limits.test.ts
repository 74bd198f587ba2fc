/** Sizes and thresholds ("Go client library", Limits). */

import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import type { ClientOptions } from '../../src/client.ts'
import { numbered, settle, setUp } from './dispatcher.ts'

/** A call that travels as so many bytes of JSON. */
function callOf(bytes: number, event = 'E') {
  const call = (note: string) => ({ userId: 'u', event, messageId: 'm', properties: { note } })
  const wire = {
    ...call(''),
    type: 'track',
    timestamp: '2026-01-15T09:30:00.000Z',
    context: { library: { name: 'hookline', version: manifest.version } },
  }
  return call('x'.repeat(bytes - JSON.stringify(wire).length))
}

describe('maximum size of one call, 32 KB', () => {
  it('exactly 32 KB is taken', async () => {
    const { client, calls } = setUp()
    client.track(callOf(32 * 1024))
    await client.flush()
    expect(calls().map((call) => JSON.stringify(call).length)).toEqual([32 * 1024])
  })

  it.each([
    ['one byte more', 'xx'],
    ['as many characters, of which one has two bytes', 'é'],
  ])('%s is refused at the call, which says the size and the limit', async (_size, end) => {
    const { client, requests } = setUp()
    const { properties, ...call } = callOf(32 * 1024)
    const note = properties.note.slice(0, -1) + end
    const record = () => client.track({ ...call, properties: { note } })

    expect(record).toThrow(expect.objectContaining({ code: 'call_too_large' }))
    expect(record).toThrow(/^track: .*32768 .*32769 /)

    await client.flush()
    expect(requests).toHaveLength(0)
  })
})

it.each([
  ['500 000 bytes are sent at once', 0, [500_000]],
  ['one byte more is not', 1, [483_947, 16_101]],
])('%s: 500 KB by either meaning of KB', async (_name, more, sizes) => {
  const { client, requests } = setUp()
  // 48 bytes around the calls, and a comma between two.
  const around = '{"batch":[],"sentAt":"2026-01-15T09:30:00.000Z"}'.length
  for (let index = 0; index < 15; index++) client.track(callOf(32_259))
  client.track(callOf(500_000 - around - 15 * 32_260 + more))
  await client.flush()
  expect(requests.map(({ bytes }) => bytes.length)).toEqual(sizes)
})

describe('the flush threshold', () => {
  it('is 20 messages: a batch never has more, however many wait', async () => {
    const { client, batches } = setUp()
    for (let index = 0; index < 45; index++) client.track(numbered(index))
    await settle()
    expect(batches().map(({ length }) => length)).toEqual([20, 20])
    await client.flush()
    expect(batches().map(({ length }) => length)).toEqual([20, 20, 5])
  })
})

it.each<[string, Partial<ClientOptions>, number, boolean, number]>([
  ['is 5 seconds from the making of the client', {}, 3_000, false, 2_000],
  ['is as long as given', { flushAfterMs: 700 }, 100, false, 600],
  ['begins anew with a flush that was asked for', {}, 3_000, true, 5_000],
  ['goes on while nothing is recorded, without a timer', {}, 61_000, false, 4_000],
])('the flush interval %s', async (_rule, options, idleMs, hasFlush, ms) => {
  const { client, clock, requests } = setUp([], options)

  await clock.advance(idleMs)
  if (hasFlush) await client.flush()
  expect(clock.timers).toBe(0)
  client.track(numbered(0))

  await clock.advance(ms - 1)
  expect(requests).toHaveLength(0)
  await clock.advance(1)
  expect(requests).toHaveLength(1)
})

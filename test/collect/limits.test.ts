/** Sizes and thresholds ("Go client library", Limits). */

import { describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { HooklineError } from '../../src/protocol/error.ts'
import { eventsOf, numbered, settle, setUp } from './dispatcher.ts'

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
    const { client, sent } = setUp()
    client.track(callOf(32 * 1024))
    await client.flush()
    expect(JSON.stringify(sent[0]?.calls[0])).toHaveLength(32 * 1024)
  })

  it('one byte more is refused at the call, which says the size and the limit', async () => {
    const { client, sent } = setUp()
    const record = () => client.track(callOf(32 * 1024 + 1))
    expect(record).toThrow(HooklineError)
    expect(record).toThrow(expect.objectContaining({ code: 'call_too_large' }))
    expect(record).toThrow(
      'track: the call must be at most 32768 bytes of JSON. Got 32769 bytes. Pass fewer or shorter fields.',
    )
    await client.flush()
    expect(sent).toHaveLength(0)
  })

  it('it is bytes of UTF-8 that count, not characters', () => {
    const { client } = setUp()
    const { properties, ...call } = callOf(32 * 1024)
    const note = `${properties.note.slice(0, -1)}é`
    expect(() => client.track({ ...call, properties: { note } })).toThrow('32769 bytes')
  })
})

describe('maximum size of one batch request, 500 KB', () => {
  it('what does not fit goes into the next batch, in order', async () => {
    const { client, sent, dispatcher } = setUp()
    for (let index = 0; index < 20; index++) client.track(callOf(32 * 1024, `Event ${index}`))
    await settle()
    expect(sent.map(({ calls }) => calls.length)).toEqual([15, 5])
    expect(eventsOf(dispatcher.calls)).toEqual(Array.from({ length: 20 }, (_, index) => `Event ${index}`))
  })

  it.each([
    ['500 000 bytes are sent at once', 0, [500_000]],
    ['one byte more is not', 1, [483_947, 16_101]],
  ])('%s: 500 KB by either meaning of KB', async (_name, more, sizes) => {
    const { client, sent } = setUp()
    // 48 bytes around the calls, and a comma between two.
    const around = '{"batch":[],"sentAt":"2026-01-15T09:30:00.000Z"}'.length
    for (let index = 0; index < 15; index++) client.track(callOf(32_259))
    client.track(callOf(500_000 - around - 15 * 32_260 + more))
    await client.flush()
    expect(sent.map(({ body }) => Buffer.byteLength(body))).toEqual(sizes)
  })
})

describe('default flush threshold, 20 messages', () => {
  it('a batch never has more, however many wait', async () => {
    const { client, sent } = setUp()
    for (let index = 0; index < 45; index++) client.track(numbered(index))
    await settle()
    expect(sent.map(({ calls }) => calls.length)).toEqual([20, 20])
    await client.flush()
    expect(sent.map(({ calls }) => calls.length)).toEqual([20, 20, 5])
  })
})

describe('a flush that waits for its turn', () => {
  it('is filled up with what came meanwhile, which does not count for the next one', async () => {
    const { client, clock, sent } = setUp([500], { flushAt: 3, maxInFlight: 1, flushAfterMs: 60_000 })
    client.track(numbered(0))
    void client.flush()
    await settle()
    client.track(numbered(1))
    void client.flush()
    client.track(numbered(2))
    await clock.advance(1000)
    const inOrder = [['Event 0'], ['Event 0'], ['Event 1', 'Event 2']]
    expect(sent.map(({ calls }) => eventsOf(calls))).toEqual(inOrder)
    client.track(numbered(3))
    client.track(numbered(4))
    await settle()
    expect(sent).toHaveLength(3)
    client.track(numbered(5))
    await settle()
    expect(eventsOf(sent[3]?.calls ?? [])).toEqual(['Event 3', 'Event 4', 'Event 5'])
  })
})

describe('default flush interval, 5 seconds since the last flush', () => {
  it('counts from the making of the client', async () => {
    const { client, clock, sent } = setUp()
    await clock.advance(3000)
    client.track(numbered(0))
    await clock.advance(1999)
    expect(sent).toHaveLength(0)
    await clock.advance(1)
    expect(sent).toHaveLength(1)
  })

  it('counts from a flush that was asked for', async () => {
    const { client, clock, sent } = setUp()
    await clock.advance(3000)
    await client.flush()
    client.track(numbered(0))
    await clock.advance(4999)
    expect(sent).toHaveLength(0)
    await clock.advance(1)
    expect(sent).toHaveLength(1)
  })

  it('goes on by the interval while nothing is recorded, without a timer', async () => {
    const { client, clock, sent } = setUp()
    await clock.advance(61_000)
    expect(clock.timers).toBe(0)
    client.track(numbered(0))
    await clock.advance(3999)
    expect(sent).toHaveLength(0)
    await clock.advance(1)
    expect(sent).toHaveLength(1)
  })
})

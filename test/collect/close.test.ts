/** flush() and close(): what they wait for and what they return. */

import { describe, expect, it } from 'vitest'
import { HooklineError } from '../../src/protocol/error.ts'
import { eventsOf, numbered, settle, setUp } from './dispatcher.ts'

function watch(promise: Promise<unknown>) {
  const state = { done: false }
  promise.then(
    () => {
      state.done = true
    },
    () => {},
  )
  return state
}

describe('flush', () => {
  it('waits for what was on its way before', async () => {
    const { client, clock } = setUp(['silence'], { flushAt: 1, timeoutMs: 100 })
    client.track(numbered(0))
    await settle()
    const flushed = watch(client.flush())
    await settle()
    expect(flushed.done).toBe(false)
    await clock.advance(1100)
    expect(flushed.done).toBe(true)
  })

  it('does not wait for what is recorded after it', async () => {
    const { client } = setUp([200, 'silence'], { flushAt: 1 })
    client.track(numbered(0))
    const flushed = client.flush()
    client.track(numbered(1))
    await flushed
    const again = watch(client.flush())
    await settle()
    expect(again.done).toBe(false)
  })
})

describe('close', () => {
  it('takes no more calls', async () => {
    const { client } = setUp()
    const closed = client.close()
    expect(() => client.track(numbered(0))).toThrow(HooklineError)
    expect(() => client.track(numbered(0))).toThrow(expect.objectContaining({ code: 'shutting_down' }))
    expect(() => client.identify({ userId: 'u' })).toThrow('identify: the client is closed.')
    await closed
    await client.flush()
  })

  it('returns what was being posted and what waited, in order, on timeout', async () => {
    const { client, clock, aborted, failures } = setUp(['silence', 500, 200, 'silence'], { flushAt: 2, maxInFlight: 3 })
    for (let index = 0; index < 9; index++) client.track(numbered(index))
    const flushed = client.flush()
    const closed = watch(client.close({ timeoutMs: 500 }))
    await clock.advance(499)
    expect(closed.done).toBe(false)
    const rest = client.close()
    await clock.advance(1)
    // Events 4 and 5 were delivered; the others were cut off, waited for their retry, or for their turn.
    const expected = ['Event 0', 'Event 1', 'Event 2', 'Event 3', 'Event 6', 'Event 7', 'Event 8']
    expect(eventsOf(await rest)).toEqual(expected)
    expect((await rest)[0]).toMatchObject({
      type: 'track',
      messageId: expect.any(String),
      timestamp: expect.any(String),
    })
    expect(aborted).toHaveLength(2)
    expect(failures).toEqual([])
    await flushed
  })

  it('waits 10 seconds by default, retries included', async () => {
    const { client, clock } = setUp(Array(20).fill(500))
    client.track(numbered(0))
    const closed = watch(client.close())
    await clock.advance(9999)
    expect(closed.done).toBe(false)
    await clock.advance(1)
    expect(closed.done).toBe(true)
  })

  it('nothing is sent afterwards', async () => {
    const { client, clock, sent } = setUp(Array(20).fill(500))
    client.track(numbered(0))
    const closed = client.close({ timeoutMs: 100 })
    await clock.advance(100)
    expect(eventsOf(await closed)).toEqual(['Event 0'])
    await clock.advance(600_000)
    expect(sent).toHaveLength(1)
  })

  it('onError gets what is given up meanwhile, and close does not return it', async () => {
    const { client, failures } = setUp([400])
    client.track(numbered(0))
    expect(await client.close()).toEqual([])
    expect(failures).toHaveLength(1)
  })

  it('an answer that comes as time is over counts once', async () => {
    const { client, clock, failures } = setUp([400])
    client.track(numbered(0))
    const closed = client.close({ timeoutMs: 0 })
    await clock.advance(0)
    expect((await closed).length + failures.length).toBe(1)
  })

  it('twice is once', async () => {
    const { client, clock, sent } = setUp(['silence'])
    client.track(numbered(0))
    const both = [client.close({ timeoutMs: 100 }), client.close({ timeoutMs: 1 })]
    await clock.advance(100)
    const [first, second] = await Promise.all(both)
    expect(first).toHaveLength(1)
    expect(second).toBe(first)
    expect(sent).toHaveLength(1)
  })

  it.each([
    [{ timeout: 500 }, '`timeout`'],
    [5, '`close: options`'],
  ])('%o is a TypeError, and closes nothing', async (options, message) => {
    const { client, dispatcher } = setUp()
    await expect(client.close(options as never)).rejects.toThrow(message)
    client.track(numbered(0))
    await client.flush()
    expect(dispatcher.calls).toHaveLength(1)
    await client.close()
    await expect(client.close(options as never)).rejects.toThrow(TypeError)
  })
})

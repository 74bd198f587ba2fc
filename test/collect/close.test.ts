/** flush() and close(): what they wait for and what they return. */

import { describe, expect, it, vi } from 'vitest'
import { eventsOf, numbered, settle, setUp } from './dispatcher.ts'

function watch(promise: Promise<unknown>) {
  const ended = vi.fn()
  promise.then(ended, () => {})
  return ended
}

describe('flush', () => {
  it('waits for what was on its way before', async () => {
    const { client, clock } = setUp(['hang'], { flushAt: 1, timeoutMs: 100 })
    client.track(numbered(0))
    await settle()

    const flushed = watch(client.flush())
    await settle()
    expect(flushed).not.toHaveBeenCalled()

    await clock.advance(1100)
    expect(flushed).toHaveBeenCalled()
  })

  it('does not wait for what is recorded after it', async () => {
    const { client } = setUp([200, 'hang'], { flushAt: 1 })
    client.track(numbered(0))

    const flushed = client.flush()
    client.track(numbered(1))
    await flushed

    const again = watch(client.flush())
    await settle()
    expect(again).not.toHaveBeenCalled()
  })
})

describe('close', () => {
  it('takes no more calls', async () => {
    const { client } = setUp()
    const closed = client.close()
    expect(() => client.track(numbered(0))).toThrow(expect.objectContaining({ code: 'shutting_down' }))
    expect(() => client.identify({ userId: 'u' })).toThrow(/^identify: /)
    await closed
    await client.flush()
  })

  it('returns what was being posted and what waited, in order, on timeout, also when it is called again', async () => {
    const options = { flushAt: 2, maxInFlight: 3 }
    const { client, clock, failures, aborted, requests } = setUp(['hang', 500, 200, 'hang'], options)
    for (let index = 0; index < 9; index++) client.track(numbered(index))
    const flushed = client.flush()

    const closed = watch(client.close({ timeoutMs: 500 }))
    await clock.advance(499)
    expect(closed).not.toHaveBeenCalled()
    const rest = client.close()
    await clock.advance(1)

    // Events 4 and 5 were delivered; the others were cut off, waited for their retry, or for their turn.
    const expected = ['Event 0', 'Event 1', 'Event 2', 'Event 3', 'Event 6', 'Event 7', 'Event 8']
    expect(eventsOf(await rest)).toEqual(expected)
    const complete = { type: 'track', messageId: expect.any(String), timestamp: expect.any(String) }
    expect((await rest)[0]).toMatchObject(complete)
    await flushed
    await clock.advance(60_000)
    expect([aborted(), failures, requests.length]).toEqual([2, [], 4])
  })

  it('waits 10 seconds by default, retries included, and sends nothing afterwards', async () => {
    const { client, clock, requests } = setUp(Array(20).fill(500))
    client.track(numbered(0))

    const closed = watch(client.close())
    await clock.advance(9999)
    expect(closed).not.toHaveBeenCalled()

    await clock.advance(1)
    expect(closed.mock.calls).toMatchObject([[[numbered(0)]]])
    const before = requests.length
    await clock.advance(600_000)
    expect(requests).toHaveLength(before)
  })

  it('with a wrong option is a TypeError, and closes nothing', async () => {
    const { client, calls } = setUp()
    await expect(client.close({ timeout: 500 } as never)).rejects.toThrow('`timeout`')
    client.track(numbered(0))
    await client.close()
    expect(calls()).toHaveLength(1)
  })
})

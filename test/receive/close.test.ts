import { describe, expect, it, vi } from 'vitest'
import type { EndpointBody } from '../../src/host/body.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, hostRequest, setUp } from '../support/receive.ts'

const page = (userId: string) => ({ ...fixtures.page, userId })

/** A receiver whose handlers hold each message until `held` settles. */
function setUpHeld(inbox?: Parameters<typeof setUpInbox>[0]) {
  const set = setUpInbox(inbox)
  const held = Promise.withResolvers<void>()
  const seen: (string | null | undefined)[] = []
  const signals: AbortSignal[] = []
  set.receiver.on('*', ({ userId }, { signal }) => {
    seen.push(userId)
    signals.push(signal)
    return held.promise
  })
  const closing = (graceMs?: number) => {
    const state: { left?: unknown } = {}
    void set.receiver.close(graceMs === undefined ? {} : { graceMs }).then((left) => Object.assign(state, { left }))
    return state
  }
  return { ...set, held, seen, signals, closing }
}

describe('close, with an inbox', () => {
  it('waits for handlers as long as the grace lasts, without firing their signal', async () => {
    const { receiver, clock, held, signals, closing } = setUpHeld()
    receiver.start()
    await deliver(receiver, page('running'))
    await clock.advance(0)
    const state = closing()
    await clock.advance(9999)
    expect([state, signals[0]?.aborted]).toEqual([{}, false])
    held.resolve()
    await clock.advance(0)
    expect(state).toEqual({ left: [] })
    await clock.advance(5 * 60_000)
    expect(signals[0]?.aborted).toBe(false)
  })

  it('then fires their signal, does not wait for handlers that ignore it, and returns what would be lost', async () => {
    const { receiver, clock, held, seen, signals, errors, closing } = setUpHeld({ concurrency: 2 })
    receiver.start()
    for (const userId of ['a', 'b', 'c']) await deliver(receiver, page(userId))
    await receiver.receive(Buffer.from('forged'), {})
    await clock.advance(0)
    const state = closing()
    await clock.advance(9999)
    expect(state).toEqual({})
    await clock.advance(1)
    await clock.advance(0)
    expect(seen).toEqual(['a', 'b'])
    expect(signals.map(({ reason }) => reason?.code)).toEqual(['shutting_down', 'shutting_down'])
    const left = state.left as { bytes: Uint8Array }[]
    const stored = { id: expect.any(String), headers: expect.any(Object), receivedAt: expect.any(Date) }
    expect(left).toMatchObject([stored, stored, stored])
    expect(left.map(({ bytes }) => JSON.parse(Buffer.from(bytes).toString()).userId)).toEqual(['a', 'b', 'c'])
    held.reject(new Error('aborted'))
    await clock.advance(0)
    expect(errors.map(({ code }) => code)).toEqual(['signature_missing'])
  })

  it('spends the time for answers out of the grace', async () => {
    const { receiver, clock, closing } = setUpHeld()
    receiver.start()
    await deliver(receiver, page('running'))
    const held = Promise.withResolvers<EndpointBody>()
    const request = receiver.handle(
      hostRequest({ readBody: () => held.promise, headers: { 'content-type': 'application/json' } }),
    )
    await clock.advance(0)
    const state = closing(5000)
    await clock.advance(3000)
    held.resolve({ bytes: Buffer.from('{}'), source: 'stream' })
    expect(await request).toMatchObject({ status: 401 })
    await clock.advance(1999)
    expect(state).toEqual({})
    await clock.advance(1)
    await clock.advance(0)
    expect(state.left).toHaveLength(1)
  })

  it('without a grace, requests have 300 ms for their answers', async () => {
    const { receiver, clock, closing } = setUpHeld()
    void receiver.handle(hostRequest({ readBody: () => new Promise(() => {}) }))
    const state = closing(0)
    await clock.advance(299)
    expect(state).toEqual({})
    await clock.advance(1)
    expect(state).toEqual({ left: [] })
  })

  it('before start() returns all that is stored, and again waits for the same end', async () => {
    const { receiver } = setUpHeld()
    await deliver(receiver, page('a'))
    const [first, second] = await Promise.all([receiver.close(), receiver.close({ graceMs: 0 })])
    expect(first).toHaveLength(1)
    expect(second).toBe(first)
    expect(await receiver.close()).toBe(first)
  })
})

describe('close, with a dedupe store', () => {
  async function setUpLate() {
    const log: string[] = []
    const close = async () => void log.push('store closed')
    const claimed = { confirm: () => void log.push('confirmed'), release() {} }
    const set = setUp({ dedupe: { claim: () => claimed, close } })
    const held = { a: Promise.withResolvers<void>(), b: Promise.withResolvers<void>() }
    set.receiver.on('*', ({ userId }) => held[userId as 'a' | 'b'].promise)
    const received = [deliver(set.receiver, page('a')), deliver(set.receiver, page('b'))]
    await set.clock.advance(4500)
    for (const late of received) expect(await late).toMatchObject({ status: 503, error: { code: 'handler_timeout' } })
    void set.receiver.close().then((left) => log.push(`closed ${left.length}`))
    return { ...set, held, log }
  }

  it('waits for handlers past their deadline, so that their claims are confirmed', async () => {
    const { clock, held, log } = await setUpLate()
    await clock.advance(9998)
    held.a.resolve()
    await clock.advance(1)
    expect(log).toEqual(['confirmed'])
    held.b.resolve()
    await clock.advance(0)
    expect(log).toEqual(['confirmed', 'confirmed', 'store closed', 'closed 0'])
  })

  it('waits no longer than the grace', async () => {
    const { clock, log } = await setUpLate()
    await clock.advance(10_000)
    expect(log).toEqual(['store closed', 'closed 0'])
  })
})

describe('health', () => {
  const since = { ignored: 0, unplanned: 0, suppressed: 0 }
  const zeros = { ...since, paused: false, waiting: 0, active: 0, deadLetters: 0, oldestDueAgeMs: 0, asOf: undefined }

  it('without an inbox: ok, then closing', async () => {
    const { receiver } = setUp()
    expect(await receiver.health()).toEqual({ ready: true, status: 'ok', ...zeros })
    await receiver.close()
    expect(await receiver.health()).toEqual({ ready: false, status: 'closing', ...zeros })
  })

  it('with one: how much there is, also while it closes', async () => {
    const { receiver, clock, closing } = setUpHeld({ concurrency: 1 })
    receiver.start()
    for (const userId of ['a', 'b', 'c']) await deliver(receiver, page(userId))
    await clock.advance(700)
    const counts = { ...zeros, retrying: 0, waiting: 2, active: 1, oldestDueAgeMs: 700, asOf: new Date(clock.now()) }
    expect(await receiver.health()).toEqual({ ready: true, status: 'ok', ...counts })
    closing()
    expect(await receiver.health()).toEqual({ ready: false, status: 'closing', ...counts })
  })

  it('of a queue that fails: unavailable', async () => {
    const { receiver } = setUpInbox({}, {}, { counts: () => Promise.reject(new Error('away')) })
    const reason = expect.any(String)
    expect(await receiver.health()).toEqual({ ready: false, status: 'unavailable', reason, ...zeros })
  })

  it('of a queue that takes no messages: degraded, not ready, and why', async () => {
    const pushError = 'Queue inbox cannot use jobs.db: the disk is full.'
    const counts = { waiting: 1, active: 0, deadLetters: 0, oldestDueAt: undefined, asOf: new Date(0), pushError }
    const { receiver } = setUpInbox({}, {}, { counts: async () => counts })
    expect(await receiver.health()).toMatchObject({ ready: false, status: 'degraded', reason: pushError, waiting: 1 })
  })

  it('of a queue that hangs: unavailable, after a second', async () => {
    const { receiver, clock } = setUpInbox({}, {}, { counts: () => new Promise(() => {}) })
    const answered = vi.fn()
    void receiver.health().then(answered)
    await clock.advance(999)
    expect(answered).not.toHaveBeenCalled()
    await clock.advance(1)
    const reason = expect.any(String)
    expect(answered.mock.calls).toEqual([[{ ready: false, status: 'unavailable', reason, ...zeros }]])
    expect(clock.timers).toBe(0)
  })
})

/** Handlers with a name: of a message that is retried, those that succeeded do not run again. */

import { describe, expect, it, vi } from 'vitest'
import { fixtures } from '../../src/testing/fixtures.ts'
import { handleJob, setUpInbox } from '../support/inbox.ts'
import { deliver, setUp, watchWarnings } from '../support/receive.ts'

const HOUR = 3_600_000
const failing = (times: number) => {
  let left = times
  return vi.fn(async () => {
    if (left-- > 0) throw new Error('away')
  })
}

describe('a message whose handlers fail', () => {
  it('those without a name are one unit, which runs again as a whole or not at all', async () => {
    const { receiver, clock } = setUpInbox()
    const [one, other, crm] = [vi.fn(), failing(1), failing(3)]
    receiver.on('track', one).on('*', other).on('*', crm, { name: 'crm' }).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(24 * HOUR)
    expect([one, other, crm].map(({ mock }) => mock.calls.length)).toEqual([2, 2, 4])
  })

  it('the dead letter, the log and observers say which failed and which are done, and a redrive runs those that failed', async () => {
    const failed = vi.fn()
    const [keep, error] = [vi.fn(), vi.fn()]
    const { receiver, clock } = setUpInbox({ retries: [1000] }, { logger: { error, warn: keep, info: keep } })
    const [mail, plain, crm] = [vi.fn(), vi.fn(), failing(2)]
    receiver.observe({ failed })
    receiver.on('track', mail, { name: 'mail' }).on('track', plain).on('track', crm, { name: 'crm' }).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(HOUR)
    const handlers = { failed: ['crm'], done: ['mail', ''] }
    expect(await receiver.deadLetters()).toMatchObject([{ attempts: 2, handlers }])
    expect(failed.mock.calls).toMatchObject([
      [{ handlers, runs: [{ name: 'mail' }, {}, { name: 'crm' }] }],
      [{ handlers, runs: [{ name: 'crm' }] }],
    ])
    expect(error.mock.calls.at(-1)).toMatchObject([{ code: 'dead_letter' }, expect.stringMatching(/crm.*mail/)])
    await receiver.redrive('all')
    await clock.advance(0)
    expect(await receiver.deadLetters()).toEqual([])
    expect([mail, plain, crm].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 3])
  })

  it('that hangs until the deadline: what the others have done stays done', async () => {
    const { receiver, clock } = setUpInbox({ timeoutMs: 1000 })
    const [mail, hangs] = [vi.fn(), vi.fn(() => new Promise(() => {}))]
    receiver.on('track', mail, { name: 'mail' }).on('track', hangs, { name: 'crm' }).start()
    await deliver(receiver, fixtures.track)
    await clock.advance(24 * HOUR)
    expect([mail.mock.calls.length, hangs.mock.calls.length]).toEqual([1, 10])
  })
})

describe('what is done', () => {
  it('is stored while others go on, and not when all have ended in the same turn', async () => {
    const saved: unknown[] = []
    const save = async (state: Uint8Array) => void saved.push(JSON.parse(Buffer.from(state).toString()))
    const slow = Promise.withResolvers<void>()
    const mail = () => {}
    const first = handleJob({}, { save, handlers: { mail, crm: () => slow.promise } })
    await vi.waitFor(() =>
      expect(saved).toEqual([{ attempts: 0, releases: 0, handlers: { done: ['', 'mail'], failed: [] } }]),
    )
    slow.resolve()
    expect((await first).outcome).toEqual({ complete: true })
    await handleJob({}, { save, handlers: { mail, crm: () => {} } })
    await new Promise((resolve) => setImmediate(resolve))
    expect(saved).toHaveLength(1)
  })

  it('stays when the process stops, and when a message is redriven, which begins anew', async () => {
    const saved: string[] = []
    const save = async (state: Uint8Array) => void saved.push(`${state}`)
    const handlers = { done: ['', 'mail'], failed: ['crm'] }
    const retryState = Buffer.from(JSON.stringify({ attempts: 9, releases: 2, error: { code: 'x' }, handlers }))
    const stopping = new AbortController()
    const hangs = () => setImmediate(() => stopping.abort()) && new Promise(() => {})
    const set = { signal: stopping.signal, save, handlers: { slow: hangs, fast: () => {} } }
    const { state } = await handleJob({ retryState }, set)
    expect(saved.map((each) => JSON.parse(each))[0]).toEqual({ attempts: 0, releases: 0, handlers })
    expect(state).toEqual({ attempts: 0, releases: 1, handlers: { done: ['', 'mail', 'fast'], failed: [] } })
  })

  it('begins anew in another process when this one stops while that is stored', async () => {
    const retryState = Buffer.from('{"attempts":9,"releases":0}')
    const stopping = new AbortController()
    const save = async () => stopping.abort()
    const { handler, state } = await handleJob({ retryState }, { signal: stopping.signal, save })
    expect(handler).not.toHaveBeenCalled()
    expect(state).toEqual({ attempts: 0, releases: 1 })
  })

  it('is done when its process died: a message with nothing left is complete', async () => {
    const retryState = Buffer.from(
      JSON.stringify({ attempts: 0, releases: 0, handlers: { done: ['mail', ''], failed: [] } }),
    )
    const [mail, ignored] = [vi.fn(), vi.fn()]
    const set = { observer: { ignored }, handlers: { mail } }
    const { outcome, handler } = await handleJob({ claimCount: 2, retryState }, set)
    expect(outcome).toEqual({ complete: true })
    expect([mail, handler, ignored].map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0])
  })

  it('of a handler that is gone is said once', async () => {
    const warnings = watchWarnings()
    const state = { attempts: 1, releases: 0, handlers: { done: [], failed: ['old', ''] } }
    await handleJob({ claimCount: 2, retryState: Buffer.from(JSON.stringify(state)) })
    expect(warnings).toHaveBeenCalledExactlyOnceWith(expect.stringContaining("'old'"), expect.anything())
  })
})

it('a name is used once in a receiver, until its handler is removed', () => {
  const { receiver } = setUp()
  const crm = () => {}
  receiver.on('track', crm, { name: 'crm' })
  expect(() => receiver.on('page', crm, { name: 'crm' })).toThrow(/^`on: name`.*'crm'/)
  expect(() => receiver.onAudience('vip', { entered: crm }, { name: 'crm' })).toThrow(/^`onAudience: name`/)
  receiver.off('track', crm).on(['page', 'screen'], crm, { name: 'crm' })
})

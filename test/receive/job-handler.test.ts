import { randomUUID } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { HooklineError } from '../../src/index.ts'
import { explainError } from '../../src/receive/failure.ts'
import type { BeginTransaction, Outcome } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { claimJob, handleJob, setUpInbox } from '../support/inbox.ts'
import { deliver, schemaOf, watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const [SECOND, MINUTE, HOUR] = [1000, 60_000, 3_600_000]
const bytes = (text: string) => Buffer.from(text)
const fail = throwing(new TypeError('no'))

function setUpFailing(...[inbox, options]: Parameters<typeof setUpInbox>) {
  const set = setUpInbox(inbox, options)
  const start = set.clock.now()
  const times: number[] = []
  set.receiver.on('*', (_message, { bytes }) => {
    times.push(set.clock.now() - start)
    bytes.fill(0) // They are its own.
    fail()
  })
  set.receiver.start()
  return { ...set, times }
}

describe('retries', () => {
  it('follow the default schedule to the millisecond, then the message is a dead letter, with the error', async () => {
    const { receiver, clock, times, errors } = setUpFailing()
    await deliver(receiver, fixtures.track)
    await clock.advance(24 * HOUR)
    const delays = [0, SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR]
    let at = 0
    expect(times).toEqual(delays.map((delay) => (at += delay)))
    expect(errors.map(({ code }) => code)).toEqual(times.map(() => 'handler_failed'))
    const [letter, ...others] = await receiver.deadLetters()
    expect(others).toEqual([])
    expect(letter).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      message: fixtures.track,
      reason: 'handler_failed',
      attempts: 10,
      receivedAt: new Date(clock.now() - 24 * HOUR),
      failedAt: new Date(clock.now() - 24 * HOUR + at),
      headers: { 'content-type': 'application/json' },
      error: {
        code: 'handler_failed',
        causes: [{ name: 'TypeError', message: 'no', stack: expect.stringContaining('job-handler.test.ts') }],
      },
    })
    expect(Buffer.from(letter?.bytes ?? []).toString()).toBe(JSON.stringify(fixtures.track))
  })

  it('follow a function, which sees how many failed and why', async () => {
    const asked: [number, string][] = []
    const retries = (attempts: number, { code }: HooklineError) => {
      asked.push([attempts, code])
      return attempts < 3 ? attempts * 100.4 : undefined
    }
    const { receiver, clock, times } = setUpFailing({ retries })
    await deliver(receiver, fixtures.track)
    await clock.advance(HOUR)
    expect(times).toEqual([0, 100, 301])
    expect(asked).toEqual([1, 2, 3].map((attempts) => [attempts, 'handler_failed']))
  })

  it.each<[string, () => unknown]>([
    ['throws', fail],
    ['gives NaN', () => Number.NaN],
    ['gives a past', () => -1],
    ['gives ages', () => 2 ** 31],
    ['is async', async () => 5],
  ])('by a function that %s are those of the default list, and the process is warned', async (_how, retries) => {
    const warn = watchWarnings()
    const { receiver, clock, times } = setUpFailing({ retries: retries as never })
    await deliver(receiver, fixtures.track)

    await clock.advance(6 * SECOND)

    expect(times).toEqual([0, SECOND, 6 * SECOND])
    expect(warn.mock.calls.map(([, options]) => options)).toMatchObject(times.map(() => ({ code: 'HOOKLINE_RETRIES' })))
  })

  it('follow what a schema throws; a mismatch is a dead letter at once, and handled after a fix', async () => {
    const issues = [{ message: 'secret value', path: ['total', 'ada@shop.example'] }]
    const validate = vi.fn(async (value: unknown): Promise<object> => ({ value }))
    validate.mockRejectedValueOnce(new Error('broken')).mockResolvedValueOnce({ issues })
    const schema = schemaOf(validate)
    const { receiver, clock, errors } = setUpInbox({}, { events: { 'Order Completed': schema } })
    const seen: unknown[] = []
    receiver.on('track', 'Order Completed', (message) => seen.push(message.event))
    receiver.start()
    expect(await deliver(receiver, fixtures.track)).toMatchObject({ ok: true, status: 200 })
    await clock.advance(0)
    expect(errors).toMatchObject([{ code: 'internal' }])
    await clock.advance(SECOND)
    const error = { code: 'schema_mismatch', path: 'properties', message: expect.stringContaining('total.*') }
    expect(errors[1]?.issues).toEqual(issues)
    expect(await receiver.deadLetters()).toMatchObject([
      { reason: 'schema_mismatch', attempts: 2, message: fixtures.track, error },
    ])
    expect(JSON.stringify(await receiver.deadLetters())).not.toMatch(/secret value|ada@/)
    expect(await receiver.redrive('all')).toBe(1)
    await clock.advance(0)
    expect(seen).toEqual(['Order Completed'])
  })
})

it('handlers that never end have failed after timeoutMs, their signal fires, and what they throw later is reported', async () => {
  const { receiver, clock, errors, failed } = setUpInbox({ timeoutMs: 5000, retries: [SECOND] })
  const held = Promise.withResolvers<void>()
  const signals: AbortSignal[] = []
  const runs: unknown[] = []
  receiver.observe({ failed: (event) => runs.push(event.runs) })
  receiver.on('*', (_message, { signal }) => {
    signals.push(signal)
    return held.promise
  })
  receiver.start()
  await deliver(receiver, fixtures.track)
  await clock.advance(4999)
  expect([signals.length, signals[0]?.aborted]).toEqual([1, false])
  await clock.advance(1)
  expect(signals[0]?.reason).toMatchObject({ code: 'handler_timeout' })
  await clock.advance(SECOND)
  expect(signals).toHaveLength(2)
  await clock.advance(5000)
  expect(await receiver.deadLetters()).toMatchObject([
    { reason: 'handler_timeout', attempts: 2, error: { causes: [] } },
  ])
  expect(errors.map(({ code }) => code)).toEqual(['handler_timeout', 'handler_timeout'])
  held.reject(new Error('late'))
  await clock.advance(0)
  expect(errors.slice(2).map(({ code }) => code)).toEqual(['handler_failed', 'handler_failed'])
  expect(runs).toEqual([[], []])
  expect(failed.map(({ remoteAddress }) => remoteAddress)).toEqual(failed.map(() => undefined))
})

describe('dead letters', () => {
  it('are listed in pages, redriven and dropped', async () => {
    const { receiver, clock } = setUpInbox({ retries: [] })
    receiver.on('*', fail).start()
    for (const userId of ['a', 'b', 'c', 'd']) {
      await deliver(receiver, { ...fixtures.page, userId })
      await clock.advance(1)
    }
    const ids = (await receiver.deadLetters()).map(({ id }) => id)
    expect((await receiver.deadLetters({ limit: 1, after: ids[1] as string })).map(({ id }) => id)).toEqual([ids[2]])
    expect(await receiver.redrive([ids[1] as string, randomUUID()])).toBe(1)
    expect(await receiver.drop([ids[0] as string])).toBe(1)
    expect(await receiver.redrive('all')).toBe(3) // One of them was redriven, and has failed again.
  })

  it('name an error whose name cannot be read', () => {
    const cause = new AggregateError([Object.defineProperty(new Error('x'), 'name', { get: fail })])
    expect(explainError(new HooklineError('handler_failed', 'no', { cause }))).toMatch(/^Error: /)
  })

  it('show what several handlers threw, whatever it is, cut to a length', async () => {
    const { receiver, clock } = setUpInbox({ retries: [] })
    const hostile = Object.defineProperty(new Error('x'), 'name', { get: fail })
    const long = Object.assign(new Error('m'.repeat(9999)), { name: 'n'.repeat(999), stack: 's'.repeat(9999) })
    for (const thrown of [long, hostile, 'text', null, Object.create(null)]) {
      receiver.on('*', () => Promise.reject(thrown))
    }
    const more = Object.assign(new Error('no'), { stack: '' })
    for (let i = 0; i < 20; i += 1) receiver.on('*', () => Promise.reject(more))
    receiver.start()
    await deliver(receiver, fixtures.page)
    await clock.advance(0)
    const [letter] = await receiver.deadLetters()
    expect(letter?.error.message.length).toBeLessThan(600)
    expect(letter?.error.causes).toEqual([
      { name: 'n'.repeat(100), message: 'm'.repeat(500), stack: 's'.repeat(2000) },
      { name: 'object', message: 'The thrown value cannot be converted to text.' },
      { name: 'string', message: 'text' },
      { name: 'object', message: 'null' },
      { name: 'object', message: 'The thrown value cannot be converted to text.' },
      ...Array.from({ length: 5 }, () => ({ name: 'Error', message: 'no' })),
    ])
  })
})

describe('a message whose claims end without an outcome', () => {
  const stateOf = (attempts: number, releases: number) => bytes(JSON.stringify({ attempts, releases }))

  it.each([
    ['the first time', 1, 1, undefined],
    ['after 4 of them', 1, 5, undefined],
    ['after 4 of them and 3 failed attempts', 4, 8, stateOf(3, 0)],
    ['after 4 of them and 9 graceful stops', 1, 14, stateOf(0, 9)],
    ['when its state cannot be read', 99, 99, bytes('junk')],
    ['when its state is none of ours', 99, 99, bytes('{"attempts":"x","releases":0}')],
    ['when its state lacks the releases', 99, 99, bytes('{"attempts":1}')],
  ])('is handled %s, in attempt %i', async (_when, attempt, claimCount, retryState) => {
    const handled = vi.fn()
    const { outcome } = await handleJob({ claimCount, retryState }, { observer: { handled } })
    expect(outcome).toEqual({ complete: true })
    expect(handled.mock.calls).toMatchObject([[{ attempt }]])
  })

  describe.each([
    ['claims last as long as their process', undefined, undefined, 'crashed', 'internal', 'died'],
    ['claims lapse', 20_000, undefined, 'lease_lapsed', 'lease_lapsed', 'event loop'],
    ['one is known to have lapsed', 20_000, 26_149, 'lease_lapsed', 'lease_lapsed', '26.1 s'],
  ] as const)('where %s', (_what, leaseMs, blockedMs, reason, code, cause) => {
    it.each([
      [6, undefined, 0],
      [9, stateOf(3, 0), 3],
      [15, stateOf(0, 9), 0],
    ])('is a dead letter at claim %i', async (claimCount, retryState, attempts) => {
      const job = { claimCount, retryState, ...(blockedMs !== undefined && { blockedMs }) }
      const { outcome, state, handler, errors } = await handleJob(job, { overrides: { leaseMs } })
      expect(outcome).toMatchObject({ deadLetter: reason })
      expect(state).toMatchObject({ attempts, error: { code, message: expect.stringContaining(cause) } })
      expect(handler).not.toHaveBeenCalled()
      expect(errors).toMatchObject([{ code }])
    })
  })
})

describe('an envelope that is unreadable', () => {
  const line = { hookline: 1, at: 0, source: 'stream', headers: {} }
  const write = (more: object) => bytes(`${JSON.stringify({ ...line, ...more })}\n{}`)

  it.each<[string, Uint8Array, string]>([
    ['nothing', bytes(''), 'another format'],
    ['another JSON', bytes('[]\n'), 'another format'],
    ['another form', write({ hookline: 2 }), 'version 2'],
    ...[
      ...[{ at: 'now' }, { source: 5 }, { from: 5 }, { method: 5 }, { group: 5 }, { headers: null }, { replay: null }],
      ...[{ at: 0 }, { id: 'fix-42' }, { id: 'fix-42', at: 0, only: 'crm' }, { id: 'fix-42', at: 0, only: [5] }].map(
        (replay) => ({ replay }),
      ),
      ...[{ signature: 5, secretIndex: 0 }, { signature: 'x' }],
    ].map((more): [string, Uint8Array, string] => [JSON.stringify(more), write(more), 'lacks fields']),
  ])('%s: is a dead letter at once, which says why', async (_what, body, why) => {
    const failed = vi.fn()
    const { outcome, state, handler } = await handleJob({ body }, { observer: { failed } })
    expect(outcome).toMatchObject({ deadLetter: 'unreadable' })
    expect(failed.mock.calls).toMatchObject([[{ delivery: { bytes: body, receivedAt: new Date(5) }, attempt: 0 }]])
    expect(state).toMatchObject({ attempts: 0, error: { code: 'internal', message: expect.stringContaining(why) } })
    expect(handler).not.toHaveBeenCalled()
  })
})

describe('in a transaction of the queue', () => {
  /** Claims one message with a transaction whose commit is held, or with another one. */
  async function claimInTransaction(other?: Parameters<typeof claimJob>[1]) {
    const [committed, shutdown] = [Promise.withResolvers<void>(), new AbortController()]
    const commit = vi.fn(() => committed.promise)
    const rollback = vi.fn(async () => {})
    const begin = vi.fn<BeginTransaction>(async () => ({ db: {}, commit, rollback }))
    const set = { inbox: { transactional: true }, overrides: { isTransactional: true }, signal: shutdown.signal, begin }
    const { ended, clock } = await claimJob({}, { ...set, ...other })
    const outcomes: Outcome[] = []
    void ended.then((outcome) => outcomes.push(outcome))
    await clock.advance(0)
    expect(commit).toHaveBeenCalledTimes(other === undefined ? 1 : 0)
    expect(begin.mock.calls).toEqual(other?.begin === undefined ? [[5 * MINUTE]] : [])
    return { clock, committed, shutdown, commit, rollback, outcomes }
  }

  it.each(['the shutdown', 'the deadline'])(
    '%s in the middle of the commit: the commit alone decides',
    async (what) => {
      const { clock, committed, shutdown, rollback, outcomes } = await claimInTransaction()
      if (what === 'the shutdown') shutdown.abort()
      await clock.advance(60_000)
      expect([outcomes, rollback.mock.calls]).toEqual([[], []])
      committed.resolve()
      await clock.advance(0)
      expect(outcomes).toEqual([{ complete: true }])
      expect(rollback).not.toHaveBeenCalled()
    },
  )

  it('a transaction that cannot begin is no attempt: the message is due again soon', async () => {
    const { clock, outcomes } = await claimInTransaction({ begin: () => Promise.reject(new Error('no')) })
    const [{ retryState, ...outcome } = {}] = outcomes as { retryState?: Uint8Array }[]
    expect(outcome).toEqual({ retryAt: new Date(clock.now() + 1_000) })
    expect(JSON.parse(`${Buffer.from(retryState ?? [])}`)).toMatchObject({ attempts: 0, releases: 1 })
  })

  it('handlers that end after their deadline commit nothing', async () => {
    const held = Promise.withResolvers<void>()
    const { clock, commit, rollback, outcomes } = await claimInTransaction({ handlers: { slow: () => held.promise } })
    await clock.advance(5 * MINUTE - 1)
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(rollback).toHaveBeenCalled()
    held.resolve()
    await clock.advance(0)
    expect(outcomes).toMatchObject([{ retryAt: new Date(clock.now() + SECOND) }])
    expect(commit).not.toHaveBeenCalled()
  })

  it('a commit that fails is a retry', async () => {
    const { clock, committed, rollback, outcomes } = await claimInTransaction()
    committed.reject(new Error('no'))
    await clock.advance(0)
    expect(outcomes).toMatchObject([{ retryAt: expect.any(Date) }])
    expect(rollback).toHaveBeenCalled()
  })
})

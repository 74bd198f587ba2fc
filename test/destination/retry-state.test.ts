import { expect, test } from 'vitest'
import { readRetryState, writeRetryState } from '../../src/destination/retry-state.ts'
import { planNextStep } from '../../src/destination/schedule.ts'
import type { Attempt } from '../../src/sender/api.ts'
import { readWebhooks } from '../../src/sender/webhooks.ts'

const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/?token=${name}` })))
const [a, b, c] = targets as [(typeof targets)[0], (typeof targets)[0], (typeof targets)[0]]
const initial = readRetryState(undefined, targets)
const at = new Date('2026-01-15T09:30:00.123Z')
const times = { startedAt: at.getTime(), now: at.getTime() + 2_000, random: 0.5 }
const failed = (outcome: Partial<Attempt>): Attempt => ({
  url: 'http://a.example/?…',
  at,
  durationMs: 7,
  ok: false,
  body: '',
  ...outcome,
})

test('a job without a state has had no round', () => {
  expect(initial).toEqual({ rounds: 0, attempts: [], next: {} })
})

test('what is written is read again, with the details of the latest round', () => {
  const attempts = [
    failed({ status: 500, body: 'sorry' }),
    failed({ url: 'http://b.example/?…', error: 'reset', reason: 'hung up' }),
    failed({ url: 'http://c.example/?…', status: 503 }),
  ]
  const { state } = planNextStep(targets, initial, targets, attempts, times)
  const read = readRetryState(writeRetryState(state, targets), targets)
  expect(read).toEqual({ ...state, attempts })

  const second = planNextStep(targets, read, [a], [failed({ status: 502, body: 'again' })], times)
  expect(second.state.attempts).toMatchObject([
    { status: 500, at, body: '' },
    { error: 'reset', at, body: '' },
    { status: 503, body: '' },
    { status: 502, body: 'again' },
  ])
  expect(second.state.attempts[1]).not.toHaveProperty('reason')
})

test('a hundred attempts are no more than 5 KB', () => {
  let state = initial
  for (let round = 0; round < 33; round++) {
    const attempts = targets.map(() => failed({ status: 503, body: 'x'.repeat(256) }))
    state = planNextStep(targets, state, targets, attempts, times).state
  }
  expect(state.attempts).toHaveLength(99)
  expect(writeRetryState(state, targets).byteLength).toBeLessThan(5_000)
})

test('a URL that was removed from the settings is named as such', () => {
  const { state } = planNextStep(targets, initial, targets, [failed({ status: 500 }), failed({}), failed({})], times)
  const read = readRetryState(writeRetryState(state, targets), [b])

  expect(read.attempts[0]).toMatchObject({ url: 'a URL that was removed', status: 500 })
})

test('the state holds no query of a URL', () => {
  const attempts = [failed({ status: 500 }), failed({ status: 500 }), failed({ status: 500 })]
  const { state } = planNextStep(targets, initial, targets, attempts, times)
  expect(String(Buffer.from(writeRetryState(state, targets)))).not.toContain('token')
})

test.each(['', 'not JSON', '{}', 'null', '[]', '{"rounds":1,"ids":["x"],"kept":5}'])(
  'an unreadable state, %j, counts as no round',
  (text) => {
    expect(readRetryState(Buffer.from(text), targets)).toEqual(initial)
  },
)

/** Two states of one message, in the bytes that release 0.1 (commit 54616cb) stored after its first and second round. */
const FIRST_OF_0_1 =
  '{"rounds":1,"ids":["beed19f57421b65c","2dd1e73a3f013170","cdbceed3ee0aa589"],"kept":[[0,1768469400000,5000,"timeout","No complete answer in time."],[1,1768469400000,0,429,"slow down"],[2,1768469400000,0,404]],"next":{"beed19f57421b65c":1768469410000,"2dd1e73a3f013170":1768469465000,"cdbceed3ee0aa589":"never"}}'
const SECOND_OF_0_1 =
  '{"rounds":2,"ids":["beed19f57421b65c","2dd1e73a3f013170","cdbceed3ee0aa589"],"kept":[[0,1768469400000,5000,"timeout"],[1,1768469400000,0,429],[2,1768469400000,0,404],[0,1768469410000,0,500]],"next":{"beed19f57421b65c":1768469420000,"2dd1e73a3f013170":1768469465000,"cdbceed3ee0aa589":"never"}}'

test('a state of 0.1 is read: rounds, attempts, and when each URL is due', () => {
  const start = new Date('2026-01-15T09:30:00.000Z')
  expect(readRetryState(Buffer.from(FIRST_OF_0_1), targets)).toEqual({
    rounds: 1,
    attempts: [
      {
        url: 'http://a.example/?…',
        at: start,
        durationMs: 5_000,
        ok: false,
        error: 'timeout',
        reason: 'No complete answer in time.',
        body: '',
      },
      { url: 'http://b.example/?…', at: start, durationMs: 0, ok: false, status: 429, body: 'slow down' },
      { url: 'http://c.example/?…', at: start, durationMs: 0, ok: false, status: 404, body: '' },
    ],
    next: { [a.id]: start.getTime() + 10_000, [b.id]: start.getTime() + 65_000, [c.id]: 'never' },
  })
  expect(readRetryState(Buffer.from(SECOND_OF_0_1), targets)).toMatchObject({
    rounds: 2,
    attempts: [{ error: 'timeout' }, { status: 429 }, { status: 404 }, { status: 500, at: new Date(1768469410000) }],
    next: { [a.id]: 1768469420000 },
  })
})

test.each([FIRST_OF_0_1, SECOND_OF_0_1])('a state of 0.1 is written again byte by byte: %s', (text) => {
  const written = writeRetryState(readRetryState(Buffer.from(text), targets), targets)
  expect(String(Buffer.from(written))).toBe(text)
})

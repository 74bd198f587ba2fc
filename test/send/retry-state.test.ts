import { expect, test } from 'vitest'
import { type RetryState, readRetryState, toStoredThrown, writeRetryState } from '../../src/send/retry-state.ts'
import { planNextStep } from '../../src/send/schedule.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import { readWebhooks, type Target } from '../../src/send/webhooks.ts'
import { attemptOf } from './set-up.ts'

const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/?token=${name}` })))
const [a, b] = targets as [(typeof targets)[0], (typeof targets)[0]]
const initial = readRetryState(undefined, targets)
const at = new Date('2026-01-15T09:30:00.123Z')
const times = { startedAt: at.getTime(), now: at.getTime() + 2_000, random: 0.5 }
const failed = (outcome: Partial<Attempt>) => attemptOf({ url: 'http://a.example/?…', at, durationMs: 7, ...outcome })

const plan = (before: RetryState, chosen: readonly Target[], attempts: readonly Attempt[]) =>
  planNextStep({ targets, before, chosen, attempts, ...times }).state

test('what is written is read again, with the details of the latest round, and holds no query of a URL', () => {
  const attempts = [
    failed({ status: 500, body: 'sorry' }),
    failed({ url: 'http://b.example/?…', error: 'reset', reason: 'hung up' }),
    failed({ url: 'http://c.example/?…', status: 503 }),
  ]
  const thrown = { message: 'no plan', stack: 'at plan' }
  const state = { ...plan({ ...initial, body: 'made' }, targets, attempts), startedAt: 5, thrown }

  const written = writeRetryState(state, targets)
  const read = readRetryState(written, targets)
  const second = plan(read, [a], [failed({ status: 502, body: 'again' })])

  expect(String(Buffer.from(written))).not.toContain('token')
  expect(read).toEqual({ ...state, attempts })
  expect(readRetryState(written, [b]).attempts[0]).toMatchObject({ url: 'a URL that was removed', status: 500 })
  const brief = attempts.map(({ reason: _, ...attempt }) => ({ ...attempt, body: '' }))
  expect(second).toMatchObject({ rounds: 2, body: 'made' })
  expect(second.attempts).toEqual([...brief, failed({ status: 502, body: 'again' })])
})

test('a hundred attempts are no more than 5 KB', () => {
  let state = initial
  for (let round = 0; round < 33; round++) {
    const attempts = targets.map(() => failed({ status: 503, body: 'x'.repeat(256) }))
    state = plan(state, targets, attempts)
  }
  expect(state.attempts).toHaveLength(99)
  expect(writeRetryState(state, targets).byteLength).toBeLessThan(5_000)
})

test.each(['', 'not JSON', '{}', 'null', '[]', '{"rounds":1,"ids":["x"],"kept":5}'])(
  'an unreadable state, %j, counts as no round',
  (text) => {
    expect(readRetryState(Buffer.from(text), targets)).toEqual(initial)
  },
)

test('of an error that was thrown, 500 characters are kept, and 2 000 of its stack, unless that throws', () => {
  const long = Object.assign(new Error('x'.repeat(501)), { stack: 'y'.repeat(2_001) })
  expect(toStoredThrown(long)).toEqual({ message: long.message.slice(1), stack: long.stack.slice(1) })
  const error = Object.defineProperty(new Error('no stack'), 'stack', { get: () => expect.fail() })
  expect(toStoredThrown(error)).toEqual({ message: 'no stack' })
})

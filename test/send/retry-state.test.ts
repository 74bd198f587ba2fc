import { expect, test } from 'vitest'
import { readRetryState, toStoredThrown, writeRetryState } from '../../src/send/retry-state.ts'
import { planNextStep } from '../../src/send/schedule.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import { readWebhooks } from '../../src/send/webhooks.ts'

const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/?token=${name}` })))
const [a, b] = targets as [(typeof targets)[0], (typeof targets)[0]]
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

test('what is written is read again, with the details of the latest round', () => {
  const attempts = [
    failed({ status: 500, body: 'sorry' }),
    failed({ url: 'http://b.example/?…', error: 'reset', reason: 'hung up' }),
    failed({ url: 'http://c.example/?…', status: 503 }),
  ]
  const { state } = planNextStep({ targets, before: initial, chosen: targets, attempts, ...times })
  const read = readRetryState(writeRetryState(state, targets), targets)
  expect(read).toEqual({ ...state, attempts })

  const second = planNextStep({
    targets,
    before: read,
    chosen: [a],
    attempts: [failed({ status: 502, body: 'again' })],
    ...times,
  })
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
    state = planNextStep({ targets, before: state, chosen: targets, attempts, ...times }).state
  }
  expect(state.attempts).toHaveLength(99)
  expect(writeRetryState(state, targets).byteLength).toBeLessThan(5_000)
})

test('a URL that was removed from the settings is named as such', () => {
  const { state } = planNextStep({
    targets,
    before: initial,
    chosen: targets,
    attempts: [failed({ status: 500 }), failed({}), failed({})],
    ...times,
  })
  const read = readRetryState(writeRetryState(state, targets), [b])

  expect(read.attempts[0]).toMatchObject({ url: 'a URL that was removed', status: 500 })
})

test('the state holds no query of a URL', () => {
  const attempts = [failed({ status: 500 }), failed({ status: 500 }), failed({ status: 500 })]
  const { state } = planNextStep({ targets, before: initial, chosen: targets, attempts, ...times })
  expect(String(Buffer.from(writeRetryState(state, targets)))).not.toContain('token')
})

test.each(['', 'not JSON', '{}', 'null', '[]', '{"rounds":1,"ids":["x"],"kept":5}'])(
  'an unreadable state, %j, counts as no round',
  (text) => {
    expect(readRetryState(Buffer.from(text), targets)).toEqual(initial)
  },
)

test('the stack of an error that throws is left out', () => {
  const error = new Error('no stack')
  Object.defineProperty(error, 'stack', {
    get() {
      throw new Error('no')
    },
  })
  expect(toStoredThrown(error)).toEqual({ message: 'no stack' })
})

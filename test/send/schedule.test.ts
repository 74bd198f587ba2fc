import { describe, expect, it, test } from 'vitest'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../../src/protocol/limits.ts'
import { readRetryState } from '../../src/send/retry-state.ts'
import { chooseTargets, isRetryable, LAST_START_MS, nextDelay, planNextStep } from '../../src/send/schedule.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import { readWebhooks } from '../../src/send/webhooks.ts'
import { attemptOf } from './set-up.ts'

const MINUTE = 60_000

describe('nextDelay', () => {
  it.each([
    [1, 10_000],
    [2, 20_000],
    [8, 1_280_000],
    [9, 30 * MINUTE],
    [40, 30 * MINUTE],
  ])('after round %i it is a share of %i ms', (round, most) => {
    expect(nextDelay(round, 0, 0.5)).toBe(most / 2)
    expect(nextDelay(round, 0, 0.999_999_999)).toBe(most)
  })

  const last = RETRY_WINDOW_MS - RESPONSE_TIME_MS // The attempt and its 5 s end with the four hours.
  it.each<[string, round: number, elapsedMs: number, random: number, delayMs: number | undefined]>([
    ['is a second at least', 1, 0, 0, 1_000],
    ['is a second at least', 20, 0, 0, 1_000],
    ['is as long as there is time', 20, last - 10 * MINUTE, 0.9, 10 * MINUTE],
    ['is as long as there is time', 20, last - 1_000, 0.9, 1_000],
    ['is none when no time is left', 20, last - 999, 0, undefined],
    ['is none when no time is left', 20, last * 2, 0.5, undefined],
  ])('%s: round %i after %i ms, with %f', (_rule, round, elapsedMs, random, delayMs) => {
    expect(nextDelay(round, elapsedMs, random)).toBe(delayMs)
  })
})

test('an attempt is retried after each status and error that may pass', () => {
  const errors = ['timeout', 'tls', 'dns', 'refused', 'reset', 'http', 'closed']
  const final = ['self_signed', 'private_address', 'unexpected_continue']
  expect([...final, ...errors].filter((error) => isRetryable({ error }))).toEqual(errors)
  expect([302, 404, 408, 503].filter((status) => isRetryable({ status }))).toEqual([408, 503])
})

describe('planNextStep', () => {
  const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/` })))
  const [a, b, c] = targets as [(typeof targets)[0], (typeof targets)[0], (typeof targets)[0]]
  const initial = readRetryState(undefined, targets)
  const startedAt = 1_000_000
  const now = startedAt + 2_000
  /** What follows a round of all targets, or of others, that ended with these outcomes. */
  const plan = (outcomes: readonly Partial<Attempt>[], more: Partial<Parameters<typeof planNextStep>[0]> = {}) => {
    const round = { targets, before: initial, chosen: targets, startedAt, now, random: 0.5 }
    return planNextStep({ ...round, attempts: outcomes.map(attemptOf), ...more })
  }

  test('only the retryable URLs are retried', () => {
    const outcomes = [{ status: 500 }, { status: 404 }, { error: 'timeout' }] as const
    const step = plan(outcomes)
    expect(step).toMatchObject({ retryAt: new Date(now + 5_000), state: { rounds: 1, attempts: outcomes } })
    expect(chooseTargets(targets, step.state, now + 5_000)).toEqual([a, c])
  })

  test('a URL whose Retry-After is longer is retried later, and the others do not wait for it', () => {
    const step = plan([{ status: 503, retryAfterMs: 60_000 }, { status: 500 }, { status: 400 }])
    expect(step).toMatchObject({ retryAt: new Date(now + 5_000) })
    expect(chooseTargets(targets, step.state, now + 5_000)).toEqual([b])
    expect(chooseTargets(targets, step.state, now + 60_000)).toEqual([a, b])
    const second = plan([{ status: 500 }], { before: step.state, chosen: [b], now: now + 5_000 })
    expect(second).toMatchObject({ retryAt: new Date(now + 15_000), state: { rounds: 2 } })
  })

  test('the message is refused when every URL gave a final response', () => {
    const outcomes = [{ status: 404 }, { error: 'self_signed' }, { status: 302 }] as const
    expect(plan(outcomes)).toMatchObject({ failure: 'refused', state: { attempts: outcomes } })
  })

  test('the window is over when no time is left', () => {
    const step = plan([{ status: 500 }, { status: 404 }, { status: 404 }], { now: startedAt + LAST_START_MS })
    expect(step).toMatchObject({ failure: 'window_over' })
  })

  test('a held URL is tried at the scheduled time, or the window is over', () => {
    const round = { chosen: [b], held: [a], targets: [a, b] }
    const states = (at: number | 'never') => ({ rounds: 1, next: { [a.id]: at, [b.id]: 'never' } })
    const step = plan([{ status: 404 }], round)
    expect(step).toMatchObject({ retryAt: new Date(now + 5_000), state: states(now + 5_000) })
    const last = plan([{ status: 404 }], { ...round, now: startedAt + LAST_START_MS })
    expect(last).toMatchObject({ failure: 'window_over', state: states('never') })
  })

  test('a URL that waits for the last start is still retried when no time is left for another', () => {
    const last = startedAt + LAST_START_MS
    const before = { ...initial, next: { [b.id]: last } }
    const step = plan([{ status: 500 }], { targets: [a, b], before, chosen: [a], now: last - 500 })
    expect(step).toMatchObject({ retryAt: new Date(last) })
    expect(chooseTargets([a, b], step.state, last)).toEqual([b])
  })
})

import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../../src/protocol/limits.ts'
import { readRetryState } from '../../src/send/retry-state.ts'
import { chooseTargets, isRetryable, LAST_START_MS, nextDelay, planNextStep } from '../../src/send/schedule.ts'
import type { Attempt } from '../../src/send/sender-types.ts'
import { readWebhooks } from '../../src/send/webhooks.ts'

const MINUTE = 60_000

const failed = (outcome: Partial<Attempt>): Attempt => ({
  url: 'http://a.example/',
  at: new Date(0),
  durationMs: 0,
  ok: false,
  body: '',
  ...outcome,
})

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

  it('is a second at least', () => {
    expect(nextDelay(1, 0, 0)).toBe(1_000)
    expect(nextDelay(20, 0, 0)).toBe(1_000)
  })

  it('shortens the last one, so that the attempt and its 5 s end with the four hours', () => {
    expect(LAST_START_MS).toBe(RETRY_WINDOW_MS - RESPONSE_TIME_MS)
    expect(nextDelay(20, LAST_START_MS - 10 * MINUTE, 0.9)).toBe(10 * MINUTE)
    expect(nextDelay(20, LAST_START_MS - 1_000, 0.9)).toBe(1_000)
  })

  it('gives up when no time is left', () => {
    expect(nextDelay(20, LAST_START_MS - 999, 0)).toBeUndefined()
    expect(nextDelay(20, LAST_START_MS, 0.5)).toBeUndefined()
    expect(nextDelay(20, RETRY_WINDOW_MS * 2, 0.5)).toBeUndefined()
  })

  it('never begins an attempt after the last start, whatever chance does', () => {
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(fc.array(chance, { minLength: 30, maxLength: 30 }), fc.nat(5_000), (shares, tookMs) => {
        let elapsed = 0
        for (const [index, share] of shares.entries()) {
          const delay = nextDelay(index + 1, elapsed + tookMs, share)
          if (delay === undefined) return
          elapsed += tookMs + delay
          expect(elapsed).toBeLessThanOrEqual(LAST_START_MS)
        }
      }),
    )
  })
})

describe('isRetryable', () => {
  test.each([408, 429, 500, 501, 502, 503, 504, 599])('status %i: again', (status) => {
    expect(isRetryable(failed({ status }))).toBe(true)
  })

  test.each([101, 301, 302, 307, 600, 999, 400, 401, 403, 404, 410, 413, 422])('status %i: final', (status) => {
    expect(isRetryable(failed({ status }))).toBe(false)
  })

  test.each(['timeout', 'tls', 'dns', 'refused', 'reset', 'http', 'closed'] as const)('%s: again', (error) => {
    expect(isRetryable(failed({ error }))).toBe(true)
  })

  test.each(['self_signed', 'private_address', 'unexpected_continue'] as const)('%s: final', (error) => {
    expect(isRetryable(failed({ error }))).toBe(false)
  })
})

describe('planNextStep', () => {
  const targets = readWebhooks(['a', 'b', 'c'].map((name) => ({ url: `http://${name}.example/` })))
  const [a, b, c] = targets as [(typeof targets)[0], (typeof targets)[0], (typeof targets)[0]]
  const initial = readRetryState(undefined, targets)
  const times = { startedAt: 1_000_000, now: 1_002_000, random: 0.5 }

  test('only the retryable URLs are retried', () => {
    const attempts = [failed({ status: 500 }), failed({ status: 404 }), failed({ error: 'timeout' })]
    const step = planNextStep({ targets, before: initial, chosen: targets, attempts, ...times })

    expect(step).toMatchObject({ retryAt: new Date(times.now + 5_000), state: { rounds: 1, attempts } })
    expect(chooseTargets(targets, step.state, times.now + 5_000)).toEqual([a, c])
  })

  test('a URL whose Retry-After is longer is retried later, and the others do not wait for it', () => {
    const attempts = [failed({ status: 503, retryAfterMs: 60_000 }), failed({ status: 500 }), failed({ status: 400 })]
    const step = planNextStep({ targets, before: initial, chosen: targets, attempts, ...times })

    expect(step).toMatchObject({ retryAt: new Date(times.now + 5_000) })
    expect(chooseTargets(targets, step.state, times.now + 5_000)).toEqual([b])
    expect(chooseTargets(targets, step.state, times.now + 60_000)).toEqual([a, b])

    const now = times.now + 5_000
    const second = planNextStep({
      targets,
      before: step.state,
      chosen: [b],
      attempts: [failed({ status: 500 })],
      ...times,
      now,
    })
    expect(second).toMatchObject({ retryAt: new Date(now + 10_000), state: { rounds: 2 } })
  })

  test('the message is refused when every URL gave a final response', () => {
    const attempts = [failed({ status: 404 }), failed({ error: 'self_signed' }), failed({ status: 302 })]

    expect(planNextStep({ targets, before: initial, chosen: targets, attempts, ...times })).toMatchObject({
      failure: 'refused',
      state: { attempts },
    })
  })

  test('the window is over when no time is left', () => {
    const now = times.startedAt + LAST_START_MS
    const attempts = [failed({ status: 500 }), failed({ status: 404 }), failed({ status: 404 })]

    expect(planNextStep({ targets, before: initial, chosen: targets, attempts, ...times, now })).toMatchObject({
      failure: 'window_over',
    })
  })

  test('a URL that waits for the last start is still retried when no time is left for another', () => {
    const now = times.startedAt + LAST_START_MS - 500
    const before = { ...initial, next: { [b.id]: times.startedAt + LAST_START_MS } }
    const step = planNextStep({
      targets: [a, b],
      before,
      chosen: [a],
      attempts: [failed({ status: 500 })],
      ...times,
      now,
    })

    expect(step).toMatchObject({ retryAt: new Date(times.startedAt + LAST_START_MS) })
    expect(chooseTargets([a, b], step.state, times.startedAt + LAST_START_MS)).toEqual([b])
  })
})

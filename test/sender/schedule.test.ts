import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../../src/protocol/limits.ts'
import type { Attempt } from '../../src/sender/api.ts'
import { isRetryable, LAST_START_MS, nextDelay } from '../../src/sender/schedule.ts'

const MINUTE = 60_000

describe('nextDelay', () => {
  it.each([
    [1, 10_000],
    [2, 20_000],
    [3, 40_000],
    [4, 80_000],
    [8, 1_280_000],
    [9, 30 * MINUTE],
    [40, 30 * MINUTE],
    [5_000, 30 * MINUTE],
  ])('after round %i it is a share of %i ms', (round, most) => {
    expect(nextDelay(round, 0, 0.5)).toBe(most / 2)
    expect(nextDelay(round, 0, 0.999_999_999)).toBe(most)
  })

  it('is a second at least', () => {
    expect(nextDelay(1, 0, 0)).toBe(1_000)
    expect(nextDelay(20, 0, 0)).toBe(1_000)
  })

  it('is about 5 s on average after the first round', () => {
    const shares = Array.from({ length: 1_000 }, (_, index) => index / 1_000)
    const sum = shares.reduce((total, share) => total + (nextDelay(1, 0, share) ?? 0), 0)
    expect(sum / shares.length).toBeCloseTo(5_050, -2)
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
  const attempt = (outcome: Partial<Attempt>): Attempt => ({
    url: '',
    at: 0,
    durationMs: 0,
    ok: false,
    body: '',
    ...outcome,
  })

  test.each([408, 429, 500, 501, 502, 503, 504, 599])('status %i: again', (status) => {
    expect(isRetryable(attempt({ status }))).toBe(true)
  })

  test.each([101, 301, 302, 307, 600, 999, 400, 401, 403, 404, 410, 413, 422])('status %i: final', (status) => {
    expect(isRetryable(attempt({ status }))).toBe(false)
  })

  test.each(['timeout', 'tls', 'dns', 'refused', 'reset', 'http', 'closed'] as const)('%s: again', (error) => {
    expect(isRetryable(attempt({ error }))).toBe(true)
  })

  test.each(['self_signed', 'private_address'] as const)('%s: final', (error) => {
    expect(isRetryable(attempt({ error }))).toBe(false)
  })
})

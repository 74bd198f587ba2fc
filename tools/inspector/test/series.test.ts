/** The plots: counts, percentiles and depths by intervals of the clock. */

import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { createSampler } from '../src/endpoint/queues.ts'
import { createSeries } from '../src/series.ts'

function setUp() {
  const clock = manualClock(Date.UTC(2026, 0, 15, 9, 30))
  return { clock, series: createSeries(clock) }
}

it.each([
  [0, 5_000, 1],
  [1, 5_000, 12],
  [15, 5_000, 180],
  [16, 60_000, 16],
  [300, 60_000, 240],
])('%i minutes are shown in intervals of %i ms', (minutes, intervalMs, count) => {
  const { series } = setUp()
  series.done('shop', 3)
  const read = series.readPart('shop', minutes)
  expect([read.intervalMs, read.done.length, read.done.at(-1)]).toEqual([intervalMs, count, 1])
})

it('counts and depths stay in their interval', async () => {
  const { clock, series } = setUp()
  series.done('shop', 1)
  series.failed('shop', undefined)
  series.depth('shop', 7)
  await clock.advance(5_000)
  series.done('shop', 1)
  series.done('other', 1)
  const { from, done, failed, depth, p50 } = series.readPart('shop', 1)
  expect(from).toBe(clock.now() - 55_000)
  expect(done.slice(-2)).toEqual([1, 1])
  expect(failed.slice(-2)).toEqual([1, 0])
  expect(depth.slice(-2)).toEqual([7, null])
  expect(p50.slice(-3)).toEqual([null, expect.closeTo(1, 0), expect.closeTo(1, 0)])
  const countsOf = (minutes: number) => series.readPart('shop', minutes).done.filter((count) => count > 0)
  await clock.advance(14 * 60_000 + 50_000)
  expect([countsOf(15), countsOf(240)]).toEqual([[1, 1], [2]])
  await clock.advance(5_000)
  expect([countsOf(15), countsOf(240)]).toEqual([[1], [2]])
  await clock.advance(240 * 60_000)
  expect(countsOf(240)).toEqual([])
})

function sample(health: () => Promise<unknown>, isOpen = () => true) {
  const { clock, series } = setUp()
  const calls = { health: vi.fn(health), onSample: vi.fn(), report: vi.fn() }
  const queue = { exists: async () => true, health: calls.health }
  const shop = { name: 'shop', kind: 'queue', queue } as never
  const sampler = createSampler({ parts: [shop, { name: 'site', kind: 'collector' }], series, isOpen, clock, ...calls })
  sampler.look()
  return { clock, series, sampler, ...calls }
}

it('a queue that does not respond in 1.5 seconds leaves a gap, and no depth of 0', async () => {
  const { clock, series, sampler, onSample } = sample(() => new Promise(() => {}))
  await clock.advance(1_499)
  expect([onSample.mock.calls.length, sampler.version, sampler.snapshot()]).toEqual([0, 0, []])
  await clock.advance(1)
  const counts = { waiting: 0, active: 0, deadLetters: 0, oldestDueAgeMs: 0 }
  const status = { part: 'shop', status: 'unavailable', ...counts }
  expect([onSample.mock.calls.length, sampler.version, sampler.snapshot()]).toEqual([1, 1, [status]])
  expect(series.readPart('shop', 1).depth.at(-1)).toBeNull()
})

it('queues are asked every 2 seconds while a page is open, otherwise every 10, until the end; a failure is reported', async () => {
  const isOpen = vi.fn(() => true)
  const { clock, sampler, health, report } = sample(() => Promise.reject(new Error()), isOpen)
  const countAfter = async (ms: number) => {
    health.mockClear()
    await clock.advance(ms)
    return health.mock.calls.length
  }
  expect([await countAfter(0), await countAfter(1_999), await countAfter(1)]).toEqual([1, 0, 1])
  isOpen.mockReturnValue(false)
  expect([await countAfter(2_000), await countAfter(9_999), await countAfter(1)]).toEqual([1, 0, 1])
  sampler.look()
  expect([await countAfter(1_999), await countAfter(1), report.mock.calls.length]).toEqual([0, 1, 5])
  sampler.close()
  sampler.look()
  expect([await countAfter(60_000), clock.timers]).toEqual([0, 0])
})

it('a queue is shown with all its counts, and its URLs with their circuits and latest failures', async () => {
  const jobs = { waiting: 1, active: 2, retrying: 3, deadLetters: 4, oldestDueAgeMs: 5 }
  const counts = { status: 'degraded', reason: 'slow', ...jobs }
  const url = { url: 'https://shop.example/', circuit: 'open', delivered: 6, failed: 7 }
  const urls = [{ openSince: 8, probeAt: 9 }, { why: 'status 503' }, { why: 'read ECONNRESET' }, { why: 'timeout' }]
  const failures = [undefined, { status: 503 }, { error: 'reset', reason: 'read ECONNRESET' }, { error: 'timeout' }]
  const given = failures.map((last, index) => ({
    ...{ ...url, ...(index === 0 && { openSince: new Date(8), probeAt: new Date(9) }) },
    ...(last && { lastFailure: { ...last, at: new Date(10) } }),
  }))
  const health = { ...counts, asOf: new Date(11), paused: true, isOff: true, urls: given }
  const { clock, series, sampler } = sample(async () => health)
  await clock.advance(0)
  const shown = urls.map(({ why, ...times }) => ({ ...url, ...times, ...(why && { lastFailure: { at: 10, why } }) }))
  expect(sampler.snapshot()).toEqual([{ part: 'shop', ...counts, asOf: 11, isPaused: true, isOff: true, urls: shown }])
  expect(series.readPart('shop', 1).depth.at(-1)).toBe(3)
})

it('percentiles are at most 10 % from the duration that they stand for, up to ten minutes', () => {
  const duration = fc.double({ min: 0.01, max: 900_000, noNaN: true })
  fc.assert(
    fc.property(fc.array(duration, { minLength: 1, maxLength: 200 }), (durations) => {
      const { series } = setUp()
      for (const each of durations) series.done('shop', each)
      const sorted = durations.toSorted((one, other) => one - other)
      const { p50, p95, p99 } = series.readPart('shop', 1)
      for (const [share, shown] of Object.entries({ 0.5: p50, 0.95: p95, 0.99: p99 })) {
        const exact = Math.min(sorted[Math.ceil(sorted.length * Number(share)) - 1] as number, 600_000)
        expect(Math.abs((shown.at(-1) as number) / exact - 1)).toBeLessThanOrEqual(0.1)
      }
    }),
  )
})

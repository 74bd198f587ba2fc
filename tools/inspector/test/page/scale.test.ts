/** The scales of the plots, and the line of four hours. */

import { expect, it } from 'vitest'
import { expectAttempts, findTried, placeOf } from '../../src/page/retry-times.ts'
import { drawLine, drawSteps, findTicks, findTimeTicks, greatestOf, indexAt, latestOf } from '../../src/page/scale.ts'

it.each([
  [0, [0, 1]],
  [1, [0, 1]],
  [2, [0, 1, 2]],
  [3, [0, 1, 2, 3]],
  [4, [0, 2, 4]],
  [62, [0, 50, 100]],
  [60, [0, 20, 40, 60]],
  [1_204, [0, 500, 1_000, 1_500]],
])('the ticks of values of counts up to %d', (max, ticks) => {
  expect(findTicks(max, 'count')).toEqual(ticks)
})

it.each([
  [0.5, [0, 0.2, 0.4, 0.6]],
  [0.06, [0, 0.02, 0.04, 0.06]],
  [270, [0, 100, 200, 300]],
  [55_000, [0, 20_000, 40_000, 60_000]],
  [80_000, [0, 30_000, 60_000, 90_000]],
  [600_000, [0, 300_000, 600_000]],
])('the ticks of values of durations up to %d ms', (max, ticks) => {
  const found = findTicks(max, 'duration')
  expect(found).toHaveLength(ticks.length)
  for (const [index, tick] of found.entries()) expect(tick).toBeCloseTo(ticks[index] as number, 9)
})

it('the ticks of values are few, and reach any value', () => {
  for (let max = 0.001; max < 1e7; max *= 1.37) {
    for (const unit of ['count', 'duration'] as const) {
      const ticks = findTicks(max, unit)
      expect(ticks.length).toBeLessThanOrEqual(5)
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(max * (1 - 1e-6))
    }
  }
})

const from = Date.UTC(2026, 0, 15, 9, 31, 5)
const textOf = (at: number) => new Date(at).toISOString().slice(11, 16)

it('the ticks of times are whole steps of minutes', () => {
  const ticks = findTimeTicks(from, from + 15 * 60_000, 5, 0)
  expect(ticks.map(textOf)).toEqual(['09:35', '09:40', '09:45'])
})

it('the ticks of times are hours of local time where it is half an hour ahead', () => {
  const ticks = findTimeTicks(from, from + 240 * 60_000, 5, 330 * 60_000)
  expect(ticks.map(textOf)).toEqual(['10:30', '11:30', '12:30', '13:30'])
})

const box = { width: 100, height: 50, count: 5, top: 10 }

it('lines have gaps where nothing is known, and a dot for a value by itself', () => {
  expect(drawLine([0, 10, null, 5, null], box)).toBe('M10 50h0L30 0M70 25h0')
  expect(drawLine([null, null], box)).toBe('')
})

it('lines outline columns, none where nothing is known', () => {
  expect(drawSteps([10, 5, null, 0, 10], box)).toBe('M0 50V0H20V25H40V50H60V50H80V0H100V50Z')
})

it('the interval below a pointer is found', () => {
  expect([-20, 0, 19, 20, 99, 100, 300].map((x) => indexAt(x, box))).toEqual([0, 0, 0, 1, 4, 4, 4])
})

it('the greatest and the latest value of a line are told', () => {
  expect(greatestOf([1, null, 7, 3])).toBe(7)
  expect(latestOf([1, null, 7, null])).toBe(7)
  expect(greatestOf([null])).toBeUndefined()
  expect(latestOf([])).toBeUndefined()
})

const startedAt = Date.UTC(2026, 0, 15, 9, 30)

it('the line of four hours expects later attempts at the mean of their delays, up to the end', () => {
  const nextAt = startedAt + 5_000
  const times = expectAttempts(nextAt, 1, startedAt)
  expect(times.slice(0, 3).map((at) => at - nextAt)).toEqual([10_000, 30_000, 70_000])
  expect(times.at(-1)).toBeLessThanOrEqual(startedAt + 4 * 3_600_000)
  expect((times.at(-1) as number) - (times.at(-3) as number)).toBeLessThanOrEqual(2 * 15 * 60_000)
  expect(expectAttempts(startedAt + 4 * 3_600_000 - 5_500, 20, startedAt)).toEqual([])
})

it('the line of four hours gives the first minutes room, and keeps to its ends', () => {
  const hour = 3_600_000
  expect([-1, 0, hour / 4, hour, 4 * hour, 5 * hour].map((ms) => placeOf(ms, 4 * hour))).toEqual([
    0, 0, 0.25, 0.5, 1, 1,
  ])
})

it('the line of four hours finds the attempts among the steps', () => {
  const attempt = { url: 'https://a.example/', at: 7, durationMs: 1, ok: false, status: 503, body: '' }
  const steps = [{ at: 5, what: 'queued' } as const, { at: 8, what: 'attempt', attempt } as const]
  expect(findTried(steps)).toEqual([{ at: 7, ok: false }])
})

/** The scales and lines of plots, and the line of four hours. */

import { expect, it } from 'vitest'
import { nextDelay } from '../../../../src/internals.ts'
import * as format from '../../src/page/format.ts'
import { expectAttempts, findTried, placeOf } from '../../src/page/retry-times.ts'
import { drawLine, drawSteps, findTicks, findTimeTicks, greatestOf, indexAt, latestOf } from '../../src/page/scale.ts'

it.each([
  ['count', 0, [0, 1]],
  ['count', 1, [0, 1]],
  ['count', 2, [0, 1, 2]],
  ['count', 60, [0, 20, 40, 60]],
  ['count', 1_204, [0, 500, 1_000, 1_500]],
  ['duration', 0.06, [0, 0.02, 0.04, 0.06]],
  ['duration', 55_000, [0, 20_000, 40_000, 60_000]],
] as const)('the ticks of a %s up to %d are few, and round', (unit, max, ticks) => {
  expect(findTicks(max, unit)).toEqual(ticks.map((tick) => expect.closeTo(tick, 9)))
})

it.each([
  ['whole steps of minutes', 15, 0, ['09:35', '09:40', '09:45']],
  ['hours of local time, where it is half an hour ahead', 240, 330, ['10:30', '11:30', '12:30', '13:30']],
])('the ticks of times are %s', (_what, minutes, offset, texts) => {
  const from = Date.UTC(2026, 0, 15, 9, 31, 5)
  const ticks = findTimeTicks(from, from + minutes * 60_000, 5, offset * 60_000)
  expect(ticks.map((at) => new Date(at).toISOString().slice(11, 16))).toEqual(texts)
})

const box = { width: 100, height: 50, count: 5, top: 10 }

it('lines have gaps where nothing is known, and a dot for a value by itself; columns have none there', () => {
  expect(drawLine([0, 10, null, 5, null], box)).toBe('M10 50h0L30 0M70 25h0')
  expect(drawLine([null, null], box)).toBe('')
  expect(drawSteps([10, 5, null, 0, 10], box)).toBe('M0 50V0H20V25H40V50H60V50H80V0H100V50Z')
})

it('a place beside a plot is in its nearest interval; the latest and the greatest value are of those that are known', () => {
  const values = [1, 3, 2, null]
  expect([greatestOf(values), latestOf(values), greatestOf([null])]).toEqual([3, 2, undefined])
  expect([-5, 0, 39, 100, 150].map((x) => indexAt(x, box))).toEqual([0, 0, 1, 4, 4])
})

it('names, sizes, durations and times are short', () => {
  expect(['collector', 'crm', 'c'].map((name, _, all) => format.formatInitials(name, all))).toEqual(['co', 'cr', 'c'])
  const texts = ['0.4 ms', '12 ms', '1.3 s', '59 s', '4 min 10 s', '3 h 12 min', '2 d 4 h', '1 min', '1 s']
  const durations = [0.42, 12, 1_300, 59_999, 250_000, 11_520_000, 187_200_000, 60_000, 1_000]
  expect(durations.map(format.formatDuration)).toEqual(texts)
  const sizes = ['999 B', '1 KB', '4.2 KB', '1 MB', '12 MB']
  expect([999, 1_000, 4_242, 1_000_000, 12_345_678].map(format.formatBytes)).toEqual(sizes)
  expect([1, 2_000].map((count) => format.formatCount(count, 'try', 'tries'))).toEqual(['1 try', '2,000 tries'])
  const remaining = ['00:00', '00:42', '59:59', '1:00:00', '3:12:05']
  expect([-1, 41_001, 3_599_000, 3_600_000, 11_525_000].map(format.formatCountdown)).toEqual(remaining)
  const times = [999, -4_000, 180_000].map((ms) => format.formatAgo(ms + 1, 1))
  expect([...times, format.formatInstant(0)]).toEqual(['now', '4 s ago', 'in 3 min', '1970-01-01 00:00:00.000 UTC'])
})

it('the attempts after the next one are expected at the mean of their delays, within four hours', () => {
  const times = [1_000, ...expectAttempts(1_000, 1, 500)]
  const delays = times.map((at, index) => nextDelay(index + 2, at - 500, 0.5))
  expect(delays).toEqual([...times.slice(1).map((at, index) => at - (times[index] as number)), undefined])
  expect(times.length).toBeGreaterThan(10)
})

it('the line of four hours gives the first minutes room, keeps to its ends, and has the attempts of the steps', () => {
  const places = [-1, 0, 0.25, 1, 4, 5].map((hours) => placeOf(hours, 4))
  expect(places).toEqual([0, 0, 0.25, 0.5, 1, 1])
  const attempt = { url: 'https://a.example/', at: 7, durationMs: 1, ok: false, status: 503, body: '' }
  const steps = [{ at: 5, what: 'queued' } as const, { at: 8, what: 'attempt', attempt } as const]
  expect(findTried(steps)).toEqual([{ at: 7, ok: false }])
})

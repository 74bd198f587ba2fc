/** Records the data of the plots: rates, failures, durations and queue depths of the last minutes and hours. */

import type { Clock } from 'hookline'
import type { Series } from './wire.ts'

/** The number of intervals, and the length of each in milliseconds. `FINE` covers 15 minutes, and `COARSE` covers 4 hours. */
const FINE = { count: 180, lengthMs: 5_000 } as const
const COARSE = { count: 240, lengthMs: 60_000 } as const
const SPANS = [FINE, COARSE] as const

/**
 * Durations are counted in buckets from 0.01 ms to 10 minutes. The bounds of each bucket are a fifth higher than those of the bucket
 * before. A percentile is reported as the middle of its bucket, at most 10% away from the exact duration. Durations below 0.01 ms count
 * as 0, and durations above 10 minutes as 10 minutes.
 */
const GROWTH = 1.2
const LOG_GROWTH = Math.log(GROWTH)
const MIN_MS = 0.01
const MAX_MS = 600_000
const BUCKETS: number = bucketOf(MAX_MS) + 1

interface Interval {
  done: number
  failed: number
  /** The number of waiting and active jobs; null if they were not counted. */
  depth: number | null
  readonly buckets: Uint32Array
}

export type SeriesRecorder = ReturnType<typeof createSeries>

/** Creates a recorder, which uses about 180 KB of memory for each part. */
export function createSeries(clock: Clock) {
  /** The intervals, keyed by part and length, then by number. */
  const spans = new Map<string, Map<number, Interval>>()

  function intervalsOf(part: string, lengthMs: number): Map<number, Interval> {
    const key = `${lengthMs} ${part}`
    const intervals = spans.get(key) ?? new Map<number, Interval>()
    spans.set(key, intervals)
    return intervals
  }

  /** Updates the current interval of each length. When there are too many intervals, drops the oldest. */
  function change(part: string, apply: (interval: Interval) => void): void {
    for (const { count, lengthMs } of SPANS) {
      const intervals = intervalsOf(part, lengthMs)
      const number = Math.floor(clock.now() / lengthMs)
      const interval = intervals.get(number) ?? createInterval()
      intervals.set(number, interval)
      const [oldest] = intervals.keys()
      if (intervals.size > count) intervals.delete(oldest as number)
      apply(interval)
    }
  }

  function record(part: string, what: 'done' | 'failed', durationMs: number | undefined): void {
    change(part, (interval) => {
      const { buckets } = interval
      interval[what] += 1
      if (durationMs !== undefined) buckets[bucketOf(durationMs)] = (buckets[bucketOf(durationMs)] ?? 0) + 1
    })
  }

  return {
    done: (part: string, durationMs: number): void => record(part, 'done', durationMs),
    /** Records a failed attempt or a refused request. The duration is undefined if nothing ran. */
    failed: (part: string, durationMs: number | undefined): void => record(part, 'failed', durationMs),
    /** Records how many jobs are waiting or active. */
    depth(part: string, count: number): void {
      change(part, (interval) => {
        interval.depth = count
      })
    },
    /** @param minutes The time span. Up to 15 minutes, the intervals are 5 seconds long; up to 240 minutes, one minute. */
    readPart(part: string, minutes: number): Series {
      const span = minutes * 60_000 <= FINE.count * FINE.lengthMs ? FINE : COARSE
      const { lengthMs } = span
      const count = Math.min(Math.max(Math.ceil((minutes * 60_000) / lengthMs), 1), span.count)
      const first = Math.floor(clock.now() / lengthMs) - count + 1
      const kept = intervalsOf(part, lengthMs)
      const intervals = Array.from({ length: count }, (_, index) => kept.get(first + index))
      const percentiles = (share: number) => intervals.map((each) => (each ? percentileOf(each.buckets, share) : null))
      return {
        intervalMs: lengthMs,
        from: first * lengthMs,
        done: intervals.map((each) => each?.done ?? 0),
        failed: intervals.map((each) => each?.failed ?? 0),
        p50: percentiles(0.5),
        p95: percentiles(0.95),
        p99: percentiles(0.99),
        depth: intervals.map((each) => each?.depth ?? null),
      }
    },
  }
}

function createInterval(): Interval {
  return { done: 0, failed: 0, depth: null, buckets: new Uint32Array(BUCKETS) }
}

function bucketOf(durationMs: number): number {
  if (!(durationMs >= MIN_MS)) return 0
  return 1 + Math.floor(Math.log(Math.min(durationMs, MAX_MS) / MIN_MS) / LOG_GROWTH)
}

/** Returns the duration at a percentile, such as 0.95, as the middle of its bucket. Returns null if there are no durations. */
function percentileOf(buckets: Uint32Array, share: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0)
  let rest = Math.ceil(total * share)
  const bucket = buckets.findIndex((count) => {
    rest -= count
    return rest <= 0
  })
  if (total === 0) return null
  return bucket === 0 ? 0 : MIN_MS * GROWTH ** (bucket - 0.5)
}

/** What the plots show: rates, failures, latencies and depths of the last minutes and hours. */

import type { Clock } from '../time/clock.ts'
import type { Series } from './wire.ts'

export interface SeriesRecorder {
  done(part: string, durationMs: number): void
  /** An attempt failed, or a request was refused. Undefined: nothing ran. */
  failed(part: string, durationMs: number | undefined): void
  /** How many wait and are active, when it was counted. */
  depth(part: string, count: number): void
  /** @param minutes The time span: up to 15 in intervals of 5 seconds, up to 240 in intervals of a minute. */
  read(part: string, minutes: number): Series
}

/** How many intervals are kept, of which length in milliseconds: 15 minutes, and 4 hours. */
const FINE = { count: 180, lengthMs: 5_000 } as const
const COARSE = { count: 240, lengthMs: 60_000 } as const

/**
 * Durations are counted in buckets that grow by a fifth, from 0.01 ms to 10 minutes: a percentile is the middle of its bucket, at
 * most 10 % from the duration itself. What is shorter is 0, what is longer 10 minutes.
 */
const GROWTH = 1.2
const LOG_GROWTH = Math.log(GROWTH)
const MIN_MS = 0.01
const MAX_MS = 600_000
const BUCKETS: number = bucketOf(MAX_MS) + 1

interface Interval {
  done: number
  failed: number
  /** Null where it was not counted. */
  depth: number | null
  readonly buckets: Uint32Array
}

/** The intervals of one length, of one part, by their numbers. */
interface Span {
  readonly count: number
  readonly lengthMs: number
  readonly intervals: Map<number, Interval>
}

/** Creates a recorder. What it takes for a part does not grow: about 180 KB. */
export function createSeries(clock: Clock): SeriesRecorder {
  const parts = new Map<string, readonly [fine: Span, coarse: Span]>()

  function spansOf(part: string): readonly [fine: Span, coarse: Span] {
    const known = parts.get(part)
    if (known !== undefined) return known
    const created = [
      { ...FINE, intervals: new Map() },
      { ...COARSE, intervals: new Map() },
    ] as const
    parts.set(part, created)
    return created
  }

  function record(part: string, what: 'done' | 'failed', durationMs: number | undefined): void {
    const now = clock.now()
    for (const span of spansOf(part)) {
      const interval = openInterval(span, now)
      interval[what] += 1
      if (durationMs !== undefined) increment(interval.buckets, bucketOf(durationMs))
    }
  }

  return {
    done: (part, durationMs) => record(part, 'done', durationMs),
    failed: (part, durationMs) => record(part, 'failed', durationMs),
    depth(part, count) {
      const now = clock.now()
      for (const span of spansOf(part)) openInterval(span, now).depth = count
    },
    read(part, minutes) {
      const [fine, coarse] = spansOf(part)
      const span = minutes * 60_000 <= FINE.count * FINE.lengthMs ? fine : coarse
      const { lengthMs } = span
      const count = Math.min(Math.max(Math.ceil((minutes * 60_000) / lengthMs), 1), span.count)
      const first = Math.floor(clock.now() / lengthMs) - count + 1
      const intervals = Array.from({ length: count }, (_, index) => span.intervals.get(first + index))
      const percentiles = (share: number) =>
        intervals.map((each) => (each === undefined ? null : percentileOf(each.buckets, share)))
      return {
        part,
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

/** The interval of a time. The oldest one goes when there are too many. */
function openInterval({ count, lengthMs, intervals }: Span, now: number): Interval {
  const number = Math.floor(now / lengthMs)
  const known = intervals.get(number)
  if (known !== undefined) return known
  const created: Interval = { done: 0, failed: 0, depth: null, buckets: new Uint32Array(BUCKETS) }
  intervals.set(number, created)
  const [oldest] = intervals.keys()
  if (intervals.size > count) intervals.delete(oldest as number)
  return created
}

function increment(counts: Uint32Array, index: number): void {
  counts[index] = (counts[index] as number) + 1
}

function bucketOf(durationMs: number): number {
  if (!(durationMs >= MIN_MS)) return 0
  return 1 + Math.floor(Math.log(Math.min(durationMs, MAX_MS) / MIN_MS) / LOG_GROWTH)
}

/** The middle of the bucket of the duration that so many are not longer than; null without any. */
function percentileOf(buckets: Uint32Array, share: number): number | null {
  const total = buckets.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rest = Math.ceil(total * share)
  const bucket = buckets.findIndex((count) => {
    rest -= count
    return rest <= 0
  })
  return bucket === 0 ? 0 : MIN_MS * GROWTH ** (bucket - 0.5)
}

/** What the plots show: rates, failures, latencies and depths of the last minutes and hours. */

import type { Clock } from '../time/clock.ts'
import type { Series } from './wire.ts'

/** Counts what ends, in intervals of time. */
export interface SeriesRecorder {
  /** A message was done: handled, delivered, collected. `durationMs` of its handlers or its attempt. */
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
const SHORTEST_MS = 0.01
const LONGEST_MS = 600_000
const BUCKETS: number = bucketOf(LONGEST_MS) + 1

/** The intervals of one length, of one part: a ring, in which the number of an interval says its place. */
interface Ring {
  readonly count: number
  readonly lengthMs: number
  /** The number of the interval in each place: whatever is older is cleared when its place is needed, or is not read. */
  readonly numbers: Float64Array
  readonly done: Uint32Array
  readonly failed: Uint32Array
  /** -1 where it was not counted. */
  readonly depths: Float64Array
  readonly buckets: Uint32Array
}

/** Creates a recorder. What it takes for a part does not grow: about 180 KB. */
export function createSeries(clock: Clock): SeriesRecorder {
  const parts = new Map<string, readonly [fine: Ring, coarse: Ring]>()

  function ringsOf(part: string): readonly [fine: Ring, coarse: Ring] {
    const known = parts.get(part)
    if (known !== undefined) return known
    const created = [createRing(FINE), createRing(COARSE)] as const
    parts.set(part, created)
    return created
  }

  function record(part: string, what: 'done' | 'failed', durationMs: number | undefined): void {
    const now = clock.now()
    const bucket = durationMs === undefined ? undefined : bucketOf(durationMs)
    for (const ring of ringsOf(part)) {
      const place = openPlace(ring, now)
      increment(ring[what], place)
      if (bucket !== undefined) increment(ring.buckets, place * BUCKETS + bucket)
    }
  }

  return {
    done: (part, durationMs) => record(part, 'done', durationMs),
    failed: (part, durationMs) => record(part, 'failed', durationMs),
    depth(part, count) {
      const now = clock.now()
      for (const ring of ringsOf(part)) ring.depths[openPlace(ring, now)] = count
    },
    read(part, minutes) {
      const [fine, coarse] = parts.get(part) ?? [createRing(FINE), createRing(COARSE)]
      const ring = minutes * 60_000 <= FINE.count * FINE.lengthMs ? fine : coarse
      const { lengthMs, numbers, done, failed, depths, buckets } = ring
      const count = Math.min(Math.max(Math.ceil((minutes * 60_000) / lengthMs), 1), ring.count)
      const first = Math.floor(clock.now() / lengthMs) - count + 1
      const places = Array.from({ length: count }, (_, index) => {
        const place = (first + index) % ring.count
        return numbers[place] === first + index ? place : undefined
      })
      const all = <T>(valueIn: (place: number) => T, none: T): T[] =>
        places.map((place) => (place === undefined ? none : valueIn(place)))
      const percentile = (share: number) => all<number | null>((place) => percentileOf(buckets, place, share), null)
      return {
        part,
        intervalMs: lengthMs,
        from: first * lengthMs,
        done: all((place) => done[place] as number, 0),
        failed: all((place) => failed[place] as number, 0),
        p50: percentile(0.5),
        p95: percentile(0.95),
        p99: percentile(0.99),
        depth: all<number | null>((place) => (depths[place] === -1 ? null : (depths[place] as number)), null),
      }
    },
  }
}

function createRing({ count, lengthMs }: { readonly count: number; readonly lengthMs: number }): Ring {
  return {
    count,
    lengthMs,
    numbers: new Float64Array(count).fill(-1),
    done: new Uint32Array(count),
    failed: new Uint32Array(count),
    depths: new Float64Array(count).fill(-1),
    buckets: new Uint32Array(count * BUCKETS),
  }
}

/** The place of the interval of a time, cleared of an older one. However far the clock has moved, one place is looked at. */
function openPlace({ count, lengthMs, numbers, done, failed, depths, buckets }: Ring, now: number): number {
  const number = Math.floor(now / lengthMs)
  const place = number % count
  if (numbers[place] === number) return place
  numbers[place] = number
  done[place] = 0
  failed[place] = 0
  depths[place] = -1
  buckets.fill(0, place * BUCKETS, (place + 1) * BUCKETS)
  return place
}

function increment(counts: Uint32Array, index: number): void {
  counts[index] = (counts[index] as number) + 1
}

/** The first is for durations below the shortest. */
function bucketOf(durationMs: number): number {
  if (!(durationMs >= SHORTEST_MS)) return 0
  return 1 + Math.floor(Math.log(Math.min(durationMs, LONGEST_MS) / SHORTEST_MS) / LOG_GROWTH)
}

/** The middle of the bucket of the duration that so many are not longer than; null without any. */
function percentileOf(all: Uint32Array, place: number, share: number): number | null {
  const buckets = all.subarray(place * BUCKETS, (place + 1) * BUCKETS)
  const total = buckets.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rest = Math.ceil(total * share)
  const bucket = buckets.findIndex((count) => {
    rest -= count
    return rest <= 0
  })
  return bucket === 0 ? 0 : SHORTEST_MS * GROWTH ** (bucket - 0.5)
}

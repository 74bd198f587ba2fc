/** Counts attempts and measures the latency of answers, in a memory that does not grow with them. */

import { createHistogram } from 'node:perf_hooks'
import type { Result } from './post-all.ts'

/** Counts of results. */
export interface Statistics {
  readonly sent: number
  readonly failed: number
  add(result: Result): void
  /** Rate and latency on one line: `812/s, latency p50 3 ms, p95 9 ms, p99 14 ms, longest 30 ms`. */
  describe(): string
  /** Each kind of failure: `401`, `timeout`; how often, and its first result. The most frequent first. */
  failures(): readonly (readonly [kind: string, count: number, first: Result])[]
}

const PERCENTILES = [50, 95, 99]

/** Creates counts of nothing. The time of the rate begins now. */
export function createStatistics(now: () => number = () => performance.now()): Statistics {
  const startedAt = now()
  const latencies = createHistogram()
  const kinds = new Map<string, { count: number; first: Result }>()
  let [sent, failed] = [0, 0]

  return {
    get sent() {
      return sent
    },
    get failed() {
      return failed
    },
    add(result) {
      sent += 1
      const { ok, status, error, durationMs } = result
      if (status !== undefined && durationMs !== undefined) latencies.record(Math.max(1, Math.round(durationMs * 1000)))
      if (ok) return
      failed += 1
      const key = String(status ?? error)
      const kind = kinds.get(key)
      if (kind === undefined) kinds.set(key, { count: 1, first: result })
      else kind.count += 1
    },
    describe() {
      const rate = `${plain((sent * 1000) / Math.max(1, now() - startedAt))}/s`
      if (latencies.count === 0) return rate
      const percentiles = PERCENTILES.map((percent) => `p${percent} ${toMs(latencies.percentile(percent))}`)
      return `${rate}, latency ${percentiles.join(', ')}, longest ${toMs(latencies.max)}`
    },
    failures: () =>
      [...kinds]
        .map(([kind, { count, first }]) => [kind, count, first] as const)
        .sort(([, one], [, other]) => other - one),
  }
}

function toMs(microseconds: number): string {
  return `${plain(microseconds / 1000)} ms`
}

/** Two digits that count: `0.42`, `3.1`, `140`. */
function plain(value: number): string {
  return value >= 10 ? String(Math.round(value)) : String(Number(value.toPrecision(2)))
}

/** What `send` prints: a line an attempt, a progress bar instead of them on a terminal, and a summary. */

import { once } from 'node:events'
import { createHistogram } from 'node:perf_hooks'
import { Format, SingleBar } from 'cli-progress'
import type { AttemptError } from '../../http/connection-error.ts'
import { escaped, note, paint, print, printJson } from '../terminal.ts'

export interface Result {
  readonly line?: number
  readonly type?: unknown
  readonly messageId?: unknown
  readonly ok: boolean
  readonly status?: number
  readonly error?: AttemptError | 'no_message'
  readonly reason?: string
  readonly answer?: string
  readonly durationMs?: number
}

export interface Report {
  /** @param share How much of everything is sent, from 0 to 1. Returns a promise while stdout is full. */
  add(result: Result, share: number | undefined): Promise<void> | undefined
  end(givenUp: number, isInterrupted: boolean): boolean
}

export function createReport(isJson: boolean): Report {
  const statistics = createStatistics()
  const hasBar = process.stderr.isTTY && !(isJson && process.stdout.isTTY)
  const hasLines = !(hasBar && process.stdout.isTTY)
  const bar = hasBar ? createBar(() => count(statistics.sent, statistics.failed, statistics.describe())) : undefined

  return {
    add(result, share) {
      statistics.add(result)
      if (statistics.sent === 2) bar?.start(share)
      bar?.update(share)
      if (!hasLines && statistics.sent > 1) return undefined
      if (isJson) printJson(result)
      else print(toLine(result))
      return process.stdout.writableNeedDrain ? once(process.stdout, 'drain').then(() => {}) : undefined
    },
    end(givenUp, isInterrupted) {
      bar?.stop()
      const { sent, failed } = statistics
      if (isInterrupted) note(`Interrupted. Attempts that were under way, and may have been taken: ${givenUp}.`)
      if (sent !== 1 || isInterrupted) note(count(sent, failed, statistics.describe()))
      if (sent > 1) for (const [kind, times, first] of statistics.failures()) note(toFailure(kind, times, first))
      return failed === 0 && !isInterrupted
    },
  }
}

function count(sent: number, failed: number, rest: string): string {
  return `${sent} sent, ${failed === 0 ? 'all taken' : `${failed} not taken`}: ${rest}`
}

function toFailure(kind: string, times: number, { line, reason, answer }: Result): string {
  const first = [line === undefined ? '' : `line ${line}`, escaped(reason ?? answer ?? '')].filter(
    (text) => text !== '',
  )
  return `  ${times} × ${kind}${first.length === 0 ? '' : `, first ${first.join(': ')}`}`
}

/** `line 7: 401  3 ms  track 6f0c…  {"code":"signature_mismatch"}` */
function toLine({ line, type, messageId, ok, status, error, reason, answer, durationMs }: Result): string {
  const place = line === undefined ? '' : `line ${line}: `
  const outcome = paint(ok ? 'green' : 'red', String(status ?? error))
  const duration = durationMs === undefined ? '' : `${Math.round(durationMs)} ms`
  const what = [type, messageId].filter((value) => value !== undefined).join(' ')
  const parts = [outcome, duration, escaped(what), escaped(reason ?? answer ?? '')]
  return place + parts.filter((part) => part !== '').join('  ')
}

function createBar(describe: () => string) {
  const stream = process.stderr
  const format: ConstructorParameters<typeof SingleBar>[0]['format'] = (options, { progress, total }) => {
    const drawn = total === 0 ? '' : `[${Format.BarFormat(progress, options)}] ${Math.floor(progress * 100)} %  `
    return drawn + describe()
  }
  const bar = new SingleBar({ stream, format, barsize: 20, clearOnComplete: true, hideCursor: true, forceRedraw: true })
  return {
    start: (share: number | undefined) => bar.start(share === undefined ? 0 : 1, 0),
    update: (share: number | undefined) => bar.update(share ?? 0),
    stop: () => bar.stop(),
  }
}

const PERCENTILES = [50, 95, 99]

/** Counts attempts and measures the latency of answers, in a memory that does not grow with them. The time of the rate begins now. */
export function createStatistics(now: () => number = () => performance.now()) {
  const startedAt = now()
  const latencies = createHistogram()
  const kinds = new Map<string, { count: number; first: Result }>()
  let [sent, failed] = [0, 0]

  return {
    get sent(): number {
      return sent
    },
    get failed(): number {
      return failed
    },
    add(result: Result): void {
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
    /** Rate and latency on one line: `812/s, latency p50 3 ms, p95 9 ms, p99 14 ms, longest 30 ms`. */
    describe(): string {
      const rate = `${plain((sent * 1000) / Math.max(1, now() - startedAt))}/s`
      if (latencies.count === 0) return rate
      const percentiles = PERCENTILES.map((percent) => `p${percent} ${toMs(latencies.percentile(percent))}`)
      return `${rate}, latency ${percentiles.join(', ')}, longest ${toMs(latencies.max)}`
    },
    /** Each kind of failure: `401`, `timeout`; how often, and its first result. The most frequent first. */
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

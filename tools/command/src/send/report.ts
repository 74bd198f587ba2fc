/** Prints the output of `hookline send`: a line for each attempt, or a progress bar on a terminal, and a summary. */

import { once } from 'node:events'
import { createHistogram } from 'node:perf_hooks'
import { Format, SingleBar } from 'cli-progress'
import type { AttemptError } from 'hookline/sender'
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
  /**
   * Adds a result. While stdout is full, returns a promise that resolves when there is room again.
   *
   * @param share The share of all messages that has been sent, from 0 to 1; undefined when it is unknown.
   */
  add(result: Result, share: number | undefined): Promise<void> | undefined
  finish(givenUp: number, isInterrupted: boolean): boolean
}

export function createReport(isJson: boolean): Report {
  const statistics = createStatistics()
  const hasBar = process.stderr.isTTY && !(isJson && process.stdout.isTTY)
  const hasLines = !(hasBar && process.stdout.isTTY)
  const bar = hasBar ? createBar(statistics.describe) : undefined

  return {
    add(result, share) {
      const sent = statistics.add(result)
      if (sent === 2) bar?.start(share === undefined ? 0 : 1, 0)
      bar?.update(share ?? 0)
      if (!hasLines && sent > 1) return undefined
      if (isJson) printJson(result)
      else print(toLine(result))
      return process.stdout.writableNeedDrain ? once(process.stdout, 'drain').then(() => {}) : undefined
    },
    finish(givenUp, isInterrupted) {
      bar?.stop()
      const { sent, failed } = statistics.counts()
      if (isInterrupted) note(`Interrupted. Aborted attempts, whose messages may have been accepted: ${givenUp}.`)
      if (sent !== 1 || isInterrupted) note(statistics.describe())
      if (sent > 1) for (const failure of statistics.failures()) note(toFailure(failure))
      return failed === 0 && !isInterrupted
    },
  }
}

function createBar(describe: () => string): SingleBar {
  return new SingleBar({
    stream: process.stderr,
    format(options, { progress, total }) {
      const bar = total === 0 ? '' : `[${Format.BarFormat(progress, options)}] ${Math.floor(progress * 100)} %  `
      return bar + describe()
    },
    barsize: 20,
    clearOnComplete: true,
    hideCursor: true,
    forceRedraw: true,
  })
}

/** Formats an attempt: `line 7: 401  3 ms  track 6f0c…  {"code":"signature_mismatch"}`. */
function toLine({ line, type, messageId, ok, status, error, reason, answer, durationMs }: Result): string {
  const place = line === undefined ? '' : `line ${line}: `
  const outcome = paint(ok ? 'green' : 'red', String(status ?? error))
  const duration = durationMs === undefined ? '' : `${Math.round(durationMs)} ms`
  const what = [type, messageId].filter((value) => value !== undefined).join(' ')
  return place + [outcome, duration, escaped(what), escaped(reason ?? answer ?? '')].filter(Boolean).join('  ')
}

/** The failures of one kind, such as `401` or `timeout`. */
interface Failure {
  readonly kind: string
  readonly first: Result
  count: number
}

/** Formats the failures of one kind: `  2 × 401, first line 7: {"code":"signature_mismatch"}`. */
function toFailure({ kind, count, first: { line, reason, answer } }: Failure): string {
  const first = [line && `line ${line}`, escaped(reason ?? answer ?? '')].filter(Boolean).join(': ')
  return `  ${count} × ${kind}${first && `, first ${first}`}`
}

const PERCENTILES = [50, 95, 99]

/** Counts attempts and measures latencies, in constant memory. The measurement of the rate starts when this function is called. */
export function createStatistics(now: () => number = () => performance.now()) {
  const startedAt = now()
  const latencies = createHistogram()
  const failures = new Map<string, Failure>()
  let [sent, failed] = [0, 0]

  return {
    counts: () => ({ sent, failed }),
    /** Adds a result. Returns the number of results so far. */
    add(result: Result): number {
      const { ok, status, error, durationMs } = result
      if (status !== undefined && durationMs !== undefined) latencies.record(Math.max(1, Math.round(durationMs * 1000)))
      if (!ok) {
        const kind = String(status ?? error)
        const failure = failures.get(kind) ?? { kind, first: result, count: 0 }
        failures.set(kind, failure)
        failure.count += 1
        failed += 1
      }
      sent += 1
      return sent
    },
    /** Summarises the attempts: `6 sent, 1 not accepted: 812/s, latency p50 3 ms, p95 9 ms, p99 14 ms, longest 30 ms`. */
    describe(): string {
      const rate = plain((sent * 1000) / Math.max(1, now() - startedAt))
      const counts = `${sent} sent, ${failed === 0 ? 'all accepted' : `${failed} not accepted`}: ${rate}/s`
      if (latencies.count === 0) return counts
      const percentiles = PERCENTILES.map((percent) => `p${percent} ${toMs(latencies.percentile(percent))}`)
      return `${counts}, latency ${percentiles.join(', ')}, longest ${toMs(latencies.max)}`
    },
    /** Lists the kinds of failures, most frequent first. */
    failures: () => [...failures.values()].sort((one, other) => other.count - one.count),
  }
}

function toMs(microseconds: number): string {
  return `${plain(microseconds / 1000)} ms`
}

/** Formats a number below 10 with two significant digits, and any other number without decimals: `0.42`, `3.1`, `142`. */
function plain(value: number): string {
  return value >= 10 ? String(Math.round(value)) : String(Number(value.toPrecision(2)))
}

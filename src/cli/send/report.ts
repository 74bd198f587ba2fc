/** What `send` prints: a line an attempt, a progress bar instead of them on a terminal, and a summary. */

import { once } from 'node:events'
import { Format, SingleBar } from 'cli-progress'
import { escaped, note, paint, print, printJson } from '../terminal.ts'
import type { Result } from './post-all.ts'
import { createStatistics } from './statistics.ts'

/** Prints results. */
export interface Report {
  /** @param share How much of everything is sent, from 0 to 1. Returns a promise while stdout is full. */
  add(result: Result, share: number | undefined): Promise<void> | undefined
  /** Prints the summary of more than one. Returns whether everything was taken. */
  end(givenUp: number, isInterrupted: boolean): boolean
}

/** Creates a report. */
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

interface Bar {
  start(share: number | undefined): void
  update(share: number | undefined): void
  stop(): void
}

function createBar(describe: () => string): Bar {
  const stream = process.stderr
  const format: ConstructorParameters<typeof SingleBar>[0]['format'] = (options, { progress, total }) => {
    const drawn = total === 0 ? '' : `[${Format.BarFormat(progress, options)}] ${Math.floor(progress * 100)} %  `
    return drawn + describe()
  }
  const bar = new SingleBar({ stream, format, barsize: 20, clearOnComplete: true, hideCursor: true, forceRedraw: true })
  return {
    start: (share) => bar.start(share === undefined ? 0 : 1, 0),
    update: (share) => bar.update(share ?? 0),
    stop: () => bar.stop(),
  }
}

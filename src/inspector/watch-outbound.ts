/** Watches what goes out: the requests that a collector takes, and the messages that a destination delivers. */

import type { CollectedEvent, CollectorObserver } from '../collector/observer.ts'
import { ROUTES } from '../collector/routes.ts'
import type { DestinationObserver, ObservedReport, QueuedEvent } from '../destination/observer.ts'
import type { Message } from '../message/message.ts'
import type { Attempt } from '../sender/api.ts'
import type { Entry } from './entry.ts'
import type { JournalWriter } from './journal.ts'
import { attemptLine, errorLine } from './lines.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire-message.ts'

/** What has `observe` of a collector. */
interface ObservedCollector {
  observe(observer: CollectorObserver): () => void
}

/** The most bytes of a body that is parsed for its line: a page that is opened first has all of them parsed at once. */
const MOST_READ = 32_768

/** Keeps what happens at a collector: each request is for itself. Returns what stops that. */
export function watchCollector(
  name: string,
  collector: ObservedCollector,
  journal: JournalWriter,
  series: SeriesRecorder,
): () => void {
  const home = journal.home(name)

  function answered({
    request,
    bytes,
    source,
    status,
    error,
    accepted,
    refused,
    at,
    durationMs,
  }: CollectedEvent): void {
    const { path, headers, remoteAddress } = request
    if (journal.isForgotten('collected', at, bytes, source)) return
    // Write keys are public, but whoever has none of them pushes nothing out.
    const entry = journal.add(home, 'collected', at, undefined, source === undefined)
    entry.path = path
    entry.remoteAddress = remoteAddress
    entry.setHeaders(headers)
    entry.setBody(bytes)
    entry.source = source
    entry.type = ROUTES.get(path)
    entry.isUnread = entry.type !== 'batch' && bytes.length <= MOST_READ
    entry.status = status
    entry.state = status < 400 ? 'done' : status >= 500 ? 'failed' : 'refused'
    entry.code = error?.code
    entry.durationMs = durationMs
    entry.add({ at, what: 'arrived', bytes: bytes.length, isCopy: false, remoteAddress } as Step)
    const answeredAt = journal.now()
    if (error === undefined) entry.add({ at: answeredAt, what: 'collected', accepted, refused, source } as Step)
    const shown = error && errorLine(error)
    entry.add({ at: answeredAt, what: 'answered', status, durationMs, error: shown } as Step)
    journal.update(entry)
    if (error === undefined) series.done(name, durationMs)
    else series.failed(name, durationMs)
  }

  return collector.observe({ answered })
}

/** What has `observe` of a destination. */
interface ObservedDestination {
  observe(observer: DestinationObserver): () => void
}

const STATES = { delivered: 'done', retrying: 'waiting', failed: 'dead' } as const

/**
 * Keeps what happens at a destination. A message may be delivered before it is known to be queued, and one that an earlier process
 * queued is known by its first round. Returns what stops that.
 */
export function watchDestination(
  name: string,
  destination: ObservedDestination,
  journal: JournalWriter,
  series: SeriesRecorder,
): () => void {
  const home = journal.home(name)

  function open(jobId: string, at: number, bytes: Uint8Array, read: () => Message): Entry | undefined {
    const known = home.byJob.get(jobId)
    if (known !== undefined) return known
    if (journal.isForgotten('sent', at, bytes)) return undefined
    const entry = journal.add(home, 'sent', at, undefined, false)
    journal.setJob(entry, jobId)
    entry.setBody(bytes)
    try {
      entry.describe(read())
    } catch {
      // It is no message: the report says so, too.
    }
    return entry
  }

  function queued({ id, message, bytes, at }: QueuedEvent): void {
    const entry = open(id, at, bytes, () => message)
    if (entry === undefined) return
    entry.add({ at, what: 'queued' }, true)
    journal.update(entry)
  }

  function attempted(report: ObservedReport): void {
    const { id, bytes, status, latest, attempts, reason } = report
    const now = journal.now()
    const retryAt = report.retryAt?.getTime()
    const entry = open(id, latest[0]?.at.getTime() ?? now, bytes, () => report.message)
    if (entry === undefined) return
    const last = latest.reduce<Attempt | undefined>(
      (last, each) => (last && endOf(last) > endOf(each) ? last : each),
      undefined,
    )
    entry.state = STATES[status]
    entry.code = reason ?? (status === 'delivered' ? undefined : last?.error)
    entry.retryAt = retryAt
    entry.endedAt = now
    entry.startedAt = attempts[0]?.at.getTime() ?? entry.startedAt
    if (last !== undefined) {
      entry.attempts += 1
      entry.status = last.status
      entry.durationMs = last.durationMs
    }
    for (const attempt of latest)
      entry.add({ at: attempt.at.getTime(), what: 'attempt', attempt: attemptLine(attempt) })
    entry.add({ at: now, what: 'round', status, retryAt, reason } as Step)
    journal.update(entry)
    if (status === 'delivered') series.done(name, last?.durationMs ?? 0)
    for (const { ok, durationMs } of latest) if (!ok) series.failed(name, durationMs)
    if (latest.length === 0) series.failed(name, undefined)
  }

  return destination.observe({ queued, attempted, forgotten: ({ ids }) => void journal.forget(ids) })
}

function endOf({ at, durationMs }: Attempt): number {
  return at.getTime() + durationMs
}

/** Watches a collector: each request of a client, and how it was answered. */

import type { CollectedEvent, CollectorObserver } from '../collector/observer.ts'
import { ROUTES } from '../collector/routes.ts'
import type { JournalWriter } from './journal.ts'
import { errorLine } from './lines.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire-message.ts'

/** What has `observe` of a collector. */
interface Observed {
  observe(observer: CollectorObserver): () => void
}

/** Keeps what happens at a collector: each request is for itself. Returns what stops that. */
export function watchCollector(
  name: string,
  collector: Observed,
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
    // Write keys are public, but whoever has none of them pushes nothing out.
    const entry = journal.add(home, 'collected', at, undefined, source === undefined)
    entry.path = path
    entry.remoteAddress = remoteAddress
    entry.setHeaders(headers)
    entry.setBody(bytes)
    entry.source = source
    entry.type = ROUTES.get(path)
    entry.isUnread = entry.type !== 'batch'
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

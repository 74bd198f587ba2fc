/** Watches what goes out: the requests that a collector takes, and the messages that a destination delivers. */

import type { CollectedEvent, CollectorObserver } from '../collector/observer.ts'
import { ROUTES } from '../collector/routes.ts'
import type { DestinationObserver, ObservedReport, QueuedEvent } from '../destination/observer.ts'
import { parseObject } from '../message/json.ts'
import type { Message } from '../message/message.ts'
import type { Attempt } from '../sender/api.ts'
import type { Clock } from '../time/clock.ts'
import type { JournalWriter } from './journal.ts'
import { attemptLine, errorLine } from './lines.ts'
import { addStep, describeMessage, type LoggedMessage, setBody } from './logged-message.ts'
import { createSample, type Sample } from './sample.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire.ts'

/** What has `observe` of a collector. */
interface ObservedCollector {
  observe(observer: CollectorObserver): () => void
}

/** The most bytes of a call that is parsed for its line. */
const MAX_PARSED = 32_768

/** Keeps what happens at a collector: each request is for itself. Returns what stops that. */
export function watchCollector(
  name: string,
  collector: ObservedCollector,
  journal: JournalWriter,
  series: SeriesRecorder,
  machine?: Clock,
): () => void {
  const part = journal.part(name)
  const sample = createSample(machine)
  let succeeded = 0

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
    if (error === undefined) series.done(name, durationMs)
    else series.failed(name, durationMs)
    const hasSucceeded = error === undefined && refused === 0
    const of = hasSucceeded ? sample(String(++succeeded)) : 1
    if (of === undefined) return
    if (journal.isForgotten('collected', at, bytes, source)) return
    // Write keys are public, but whoever has none of them pushes nothing out.
    const logged = journal.add(part, { kind: 'collected', at, isRefused: source === undefined })
    if (of > 1) logged.of = of
    logged.path = path
    logged.remoteAddress = remoteAddress
    logged.headers = headers
    setBody(logged, bytes)
    logged.source = source
    logged.type = ROUTES.get(path)
    if (logged.type !== 'batch' && bytes.length <= MAX_PARSED) describeCall(logged)
    logged.status = status
    logged.state = status < 400 ? 'done' : status >= 500 ? 'failed' : 'refused'
    logged.code = error?.code
    logged.durationMs = durationMs
    addStep(logged, { at, what: 'arrived', bytes: bytes.length, isCopy: false, remoteAddress } as Step)
    const answeredAt = journal.now()
    if (error === undefined) addStep(logged, { at: answeredAt, what: 'collected', accepted, refused, source } as Step)
    const shown = error && errorLine(error)
    addStep(logged, { at: answeredAt, what: 'answered', status, durationMs, error: shown } as Step)
    journal.update(logged)
  }

  return collector.observe({ answered })
}

/** Reads the type of a call from its path. */
function describeCall(logged: LoggedMessage): void {
  try {
    describeMessage(logged, { ...parseObject(logged.body), type: logged.type } as unknown as Message)
  } catch {} // It is no JSON.
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
  machine?: Clock,
): () => void {
  const part = journal.part(name)
  const samples = { queued: createSample(machine), delivered: createSample(machine) }

  /** @param sample As for a receiver. */
  function open(
    jobId: string,
    at: number,
    bytes: Uint8Array,
    read: () => Message,
    sample: Sample | undefined,
  ): LoggedMessage | undefined {
    const of = sample === undefined ? 1 : sample(jobId)
    const known = part.byJob.get(jobId)
    if (known !== undefined) return known
    if (of === undefined || journal.isForgotten('sent', at, bytes)) return undefined
    const logged = journal.add(part, { kind: 'sent', at })
    if (of > 1) logged.of = of
    journal.setJob(logged, jobId)
    setBody(logged, bytes)
    try {
      describeMessage(logged, read())
    } catch {
      // It is no message: the report says so, too.
    }
    return logged
  }

  function queued({ id, message, bytes, at }: QueuedEvent): void {
    const logged = open(id, at, bytes, () => message, samples.queued)
    if (logged === undefined) return
    addStep(logged, { at, what: 'queued' }, true)
    journal.update(logged)
  }

  function attempted(report: ObservedReport): void {
    const { id, bytes, status, latest, attempts, reason } = report
    const now = journal.now()
    const retryAt = report.retryAt?.getTime()
    const last = latest.reduce<Attempt | undefined>(
      (last, each) => (last && endOf(last) > endOf(each) ? last : each),
      undefined,
    )
    if (status === 'delivered') series.done(name, last?.durationMs ?? 0)
    for (const { ok, durationMs } of latest) if (!ok) series.failed(name, durationMs)
    if (latest.length === 0) series.failed(name, undefined)
    const isAtOnce = status === 'delivered' && latest.every(({ ok }) => ok) && attempts.length === latest.length
    const sample = isAtOnce ? samples.delivered : undefined
    const logged = open(id, latest[0]?.at.getTime() ?? now, bytes, () => report.message, sample)
    if (logged === undefined) return
    logged.state = STATES[status]
    logged.code = reason ?? (status === 'delivered' ? undefined : last?.error)
    logged.retryAt = retryAt
    logged.endedAt = now
    logged.startedAt = attempts[0]?.at.getTime() ?? logged.startedAt
    if (last !== undefined) {
      logged.attempts += 1
      logged.status = last.status
      logged.durationMs = last.durationMs
    }
    for (const attempt of latest)
      addStep(logged, { at: attempt.at.getTime(), what: 'attempt', attempt: attemptLine(attempt) })
    addStep(logged, { at: now, what: 'round', status, retryAt, reason } as Step)
    journal.update(logged)
  }

  return destination.observe({ queued, attempted, forgotten: ({ ids }) => void journal.forget(ids) })
}

function endOf({ at, durationMs }: Attempt): number {
  return at.getTime() + durationMs
}

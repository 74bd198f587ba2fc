/** Watches what goes out: the requests that a collector accepts, and the messages that a destination delivers. */

import type { CollectedEvent, CollectorObserver } from '../collector/observer.ts'
import { ROUTES } from '../collector/routes.ts'
import type { DestinationObserver, ObservedReport, QueuedEvent, SkippedEvent } from '../destination/observer.ts'
import { isOriginal } from '../destination/stored.ts'
import { parseObject } from '../message/json.ts'
import type { Message } from '../message/message.ts'
import type { Attempt } from '../sender/api.ts'
import type { Clock } from '../time/clock.ts'
import type { JournalWriter } from './journal.ts'
import { addStep, describeMessage, type LoggedMessage, setBody } from './logged-message.ts'
import { attemptLine, cut, errorLine, SHORT } from './redact.ts'
import { createSample, type Sample } from './sample.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire.ts'

interface Observed<Observer> {
  observe(observer: Observer): () => void
}

/** The most bytes of a call that is parsed for its line. */
const MAX_PARSED = 32_768
/** Clients send 20 calls at a time, or 100. */
const MAX_IDS = 100

export function watchCollector(
  name: string,
  collector: Observed<CollectorObserver>,
  journal: JournalWriter,
  series: SeriesRecorder,
  machine?: Clock,
): () => void {
  const part = journal.part(name)
  const sample = createSample(machine)
  let succeeded = 0

  function answered(event: CollectedEvent): void {
    const { request, bytes, source, status, error, accepted, refused, messageIds, at, durationMs } = event
    const { path, headers, remoteAddress } = request
    series[error === undefined ? 'done' : 'failed'](name, durationMs)
    const of = error === undefined && refused === 0 ? sample(String(++succeeded)) : 1
    if (of === undefined || journal.isForgotten(at, bytes, source)) return
    // Write keys are public, but whoever has none of them pushes nothing out.
    const logged = journal.add(part, { kind: 'collected', at, isRefused: source === undefined })
    const type = ROUTES.get(path)
    Object.assign(logged, {
      ...{ path, remoteAddress, headers, source, type, status, durationMs },
      ...{ of: of === 1 ? undefined : of, code: error?.code },
      state: status < 400 ? 'done' : status >= 500 ? 'failed' : 'refused',
    } satisfies Partial<LoggedMessage>)
    setBody(logged, bytes)
    if (type !== 'batch' && bytes.length <= MAX_PARSED) describeCall(logged)
    logged.messageIds = messageIds.slice(0, MAX_IDS).map((id) => cut(id, SHORT) as string)
    if (refused > 0) logged.refusedCalls = refused
    const now = journal.now()
    // Fields that are undefined are left out when it is sent.
    addStep(logged, { at, what: 'arrived', bytes: bytes.length, isCopy: false, remoteAddress } as Step)
    if (error === undefined) addStep(logged, { at: now, what: 'collected', accepted, refused, source } as Step)
    addStep(logged, { at: now, what: 'answered', status, durationMs, error: error && errorLine(error) } as Step)
    journal.update(logged)
  }

  return collector.observe({ answered })
}

function describeCall(logged: LoggedMessage): void {
  try {
    describeMessage(logged, { ...parseObject(logged.body), type: logged.type } as unknown as Message)
  } catch {} // It is no JSON.
}

const STATES = { delivered: 'done', retrying: 'waiting', failed: 'dead' } as const

/**
 * Keeps what happens at a destination. A message may be delivered before it is known to be queued, and one that an earlier process
 * queued is known by its first round. Returns what stops that.
 */
export function watchDestination(
  name: string,
  destination: Observed<DestinationObserver>,
  journal: JournalWriter,
  series: SeriesRecorder,
  machine?: Clock,
): () => void {
  const part = journal.part(name)
  const samples = { queued: createSample(machine), delivered: createSample(machine) }

  /** @param sample As for a receiver. */
  function open(
    { id, bytes }: Pick<ObservedReport, 'id' | 'bytes'>,
    at: number,
    read: () => Message,
    sample: Sample | undefined,
  ): LoggedMessage | undefined {
    const of = sample === undefined ? 1 : sample(id)
    const known = part.byId.get(id)
    if (known !== undefined) return known
    if (of === undefined || journal.isForgotten(at, bytes)) return undefined
    const logged = journal.add(part, { kind: 'sent', at, deliveryId: id })
    if (of > 1) logged.of = of
    logged.isStored = true
    setBody(logged, bytes)
    try {
      describeMessage(logged, read())
    } catch {} // It is no message: the report says so, too.
    return logged
  }

  function queued(event: QueuedEvent): void {
    const { message, at } = event
    const logged = open(event, at, () => message, samples.queued)
    if (logged === undefined) return
    addStep(logged, { at, what: 'queued' }, true)
    journal.update(logged)
  }

  function attempted(report: ObservedReport): void {
    const { status, latest, attempts, reason } = report
    const now = journal.now()
    const retryAt = report.retryAt?.getTime()
    const last = latest.toSorted((one, other) => endOf(one) - endOf(other)).at(-1)
    if (status === 'delivered') series.done(name, last?.durationMs ?? 0)
    for (const { ok, durationMs } of latest) if (!ok) series.failed(name, durationMs)
    if (latest.length === 0) series.failed(name, undefined)
    const isAtOnce = status === 'delivered' && latest.every(({ ok }) => ok) && attempts.length === latest.length
    const sample = isAtOnce ? samples.delivered : undefined
    const logged = open(report, latest[0]?.at.getTime() ?? now, () => report.message, sample)
    if (logged === undefined) return
    if (latest.length > 0 && isOriginal(logged.body)) setBody(logged, report.bytes) // What was posted.
    Object.assign(logged, {
      state: STATES[status],
      code: reason ?? (status === 'delivered' ? undefined : last?.error),
      retryAt,
      endedAt: now,
      startedAt: attempts[0]?.at.getTime() ?? logged.startedAt,
      ...(last && { attempts: logged.attempts + 1, status: last.status, durationMs: last.durationMs }),
    } satisfies Partial<LoggedMessage>)
    for (const attempt of latest) {
      addStep(logged, { at: attempt.at.getTime(), what: 'attempt', attempt: attemptLine(attempt) })
    }
    addStep(logged, { at: now, what: 'round', status, retryAt, reason } as Step)
    journal.update(logged)
  }

  /** A message that was queued, and that a filter leaves out since. */
  function skipped({ id }: SkippedEvent): void {
    const logged = id === undefined ? undefined : part.byId.get(id)
    if (logged === undefined) return
    const at = journal.now()
    Object.assign(logged, { state: 'ignored', retryAt: undefined, endedAt: at })
    addStep(logged, { at, what: 'filtered' })
    journal.update(logged)
  }

  return destination.observe({ queued, attempted, skipped, forgotten: ({ ids }) => void journal.forget(ids) })
}

function endOf({ at, durationMs }: Attempt): number {
  return at.getTime() + durationMs
}

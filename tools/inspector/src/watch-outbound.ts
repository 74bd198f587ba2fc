/** Watches outbound traffic: the requests that a collector answers, and the messages that a destination queues and delivers. */

import type { Message } from 'hookline'
import type { CollectedEvent, CollectorObserver } from 'hookline/collector'
import type { Attempt, DestinationObserver, ObservedReport, QueuedEvent, SkippedEvent } from 'hookline/sender'
import { ROUTES } from '../../../src/internals.ts'
import { isObject, tryParse } from '../../json.ts'
import type { Journal } from './journal.ts'
import { addStep, describeMessage, type LoggedMessage, setBody } from './logged-message.ts'
import { attemptLine, cut, errorLine, SHORT } from './redact.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire.ts'

interface Observed<Observer> {
  observe(observer: Observer): () => void
}

/** The maximum size of a call to parse, in bytes. The row of a larger call shows no name or user. */
const MAX_PARSED = 32_768
/** The maximum number of message ids to keep for a request. Clients send batches of 20 or 100 calls. */
const MAX_IDS = 100

export function watchCollector(
  name: string,
  collector: Observed<CollectorObserver>,
  journal: Journal,
  series: SeriesRecorder,
): () => void {
  function answered(event: CollectedEvent): void {
    const { request, bytes, source, status, error, accepted, refused, messageIds, at, durationMs } = event
    const { path, headers, remoteAddress } = request
    series[error === undefined ? 'done' : 'failed'](name, durationMs)
    if (journal.isForgotten(at, bytes, source)) return
    // A request without a valid write key is kept among the refused requests, so that it displaces no other request.
    const logged = journal.addMessage(name, { kind: 'collected', at, isRefused: source === undefined })
    const type = ROUTES.get(path)
    logged.type = type
    setBody(logged, bytes)
    if (type !== 'batch' && bytes.length <= MAX_PARSED) describeCall(logged)
    const now = journal.now()
    const fields: Partial<LoggedMessage> = {
      ...{ path, remoteAddress, headers, source, status, durationMs, code: error?.code },
      state: status < 400 ? 'done' : status >= 500 ? 'failed' : 'refused',
      messageIds: messageIds.slice(0, MAX_IDS).map((id) => cut(id, SHORT) as string),
      refusedCalls: refused || undefined,
    }
    // The cast allows undefined fields, because JSON omits them.
    const steps = [
      { at, what: 'arrived', bytes: bytes.length, isCopy: false, remoteAddress },
      ...(error === undefined ? [{ at: now, what: 'collected', accepted, refused, source }] : []),
      { at: now, what: 'answered', status, durationMs, error: error && errorLine(error) },
    ] as Step[]
    journal.update(logged, fields, ...steps)
  }

  return collector.observe({ answered })
}

function describeCall(logged: LoggedMessage): void {
  const call = tryParse(logged.body)
  if (isObject(call)) describeMessage(logged, { ...call, type: logged.type } as unknown as Message)
}

const STATES = { delivered: 'done', retrying: 'waiting', failed: 'dead' } as const

/**
 * Records the events of a destination. A message may be delivered before its `queued` event, and a message that an earlier process
 * queued has no `queued` event. Returns a function that stops the recording.
 */
export function watchDestination(
  name: string,
  destination: Observed<DestinationObserver>,
  journal: Journal,
  series: SeriesRecorder,
): () => void {
  /** @param id Undefined for a message that was not queued. */
  function findOrCreate(
    { id, bytes }: Pick<SkippedEvent, 'id'> & Pick<ObservedReport, 'bytes'>,
    at: number,
    parseMessage: () => Message,
  ): LoggedMessage | undefined {
    const known = id && journal.find(name, id)
    if (known) return known
    if (journal.isForgotten(at, bytes)) return undefined
    const logged = journal.addMessage(name, { kind: 'sent', at, deliveryId: id })
    logged.isStored = id !== undefined
    setBody(logged, bytes)
    try {
      describeMessage(logged, parseMessage())
    } catch {} // The bytes are not a message. The report contains the error.
    return logged
  }

  function queued(event: QueuedEvent): void {
    const { message, at } = event
    const logged = findOrCreate(event, at, () => message)
    if (logged === undefined) return
    addStep(logged, { at, what: 'queued' }, true)
    journal.update(logged)
  }

  function attempted(report: ObservedReport): void {
    const { status, latest, attempts, reason, error } = report
    const now = journal.now()
    const retryAt = report.retryAt?.getTime()
    const last = latest.toSorted((one, other) => endOf(one) - endOf(other)).at(-1)
    if (status === 'delivered') series.done(name, last?.durationMs ?? 0)
    for (const { ok, durationMs } of latest) if (!ok) series.failed(name, durationMs)
    if (latest.length === 0) series.failed(name, undefined)
    const logged = findOrCreate(report, latest[0]?.at.getTime() ?? now, () => report.message)
    if (logged === undefined) return
    if (latest.length > 0 && logged.attempts === 0) setBody(logged, report.bytes) // This is the body that was posted, after `transform`.
    const fields = {
      ...{ state: STATES[status], retryAt, endedAt: now },
      code: reason ?? (status === 'delivered' ? undefined : last?.error),
      startedAt: attempts[0]?.at.getTime() ?? logged.startedAt,
      ...(last && { attempts: logged.attempts + 1, status: last.status, durationMs: last.durationMs }),
    }
    const thrown = error === undefined ? undefined : errorLine(error)
    const steps = latest.map((attempt) => ({
      at: attempt.at.getTime(),
      what: 'attempt',
      attempt: attemptLine(attempt),
    }))
    const round = { at: now, what: 'round', status, retryAt, reason, error: thrown }
    journal.update(logged, fields, ...([...steps, round] as Step[]))
  }

  function skipped({ message, reason, at, ...event }: SkippedEvent): void {
    const logged = findOrCreate({ ...event, bytes: Buffer.from(JSON.stringify(message)) }, at, () => message)
    if (logged === undefined) return
    const skipped = { state: 'skipped', code: reason, retryAt: undefined, endedAt: at } as const
    journal.update(logged, skipped, { at, what: 'skipped', reason })
  }

  return destination.observe({ queued, attempted, skipped, forgotten: ({ ids }) => void journal.forget(ids) })
}

function endOf({ at, durationMs }: Attempt): number {
  return at.getTime() + durationMs
}

/** Watches a receiver: what arrives, how it is checked, stored, handled and answered. */

import type { Delivery } from '../handling/delivery.ts'
import type { AnsweredEvent, ObservedFailed, ObservedHandled, ObservedStored } from '../handling/observer.ts'
import type { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import type { Receiver } from '../receiver/api.ts'
import type { Entry } from './entry.ts'
import type { JournalWriter } from './journal.ts'
import { errorLine, runLines } from './lines.ts'
import type { SeriesRecorder } from './series.ts'
import type { RunLine, Step } from './wire-message.ts'

/** One message of a request, with its answer. */
interface Answer extends Pick<AnsweredEvent, 'delivery' | 'message' | 'error'> {
  readonly event: AnsweredEvent
}

/**
 * Keeps what happens at a receiver. Its events come in any order: a worker of the same process may handle a message before it is
 * known to be stored, and a sender repeats what it was not answered 200 for. Returns what stops that.
 */
export function watchReceiver(
  name: string,
  receiver: Pick<Receiver, 'observe'>,
  journal: JournalWriter,
  series: SeriesRecorder,
): () => void {
  const home = journal.home(name)
  /** The attempt that ended last, until it is noted. */
  let unanswered: ObservedHandled | undefined
  /** The errors that `failed` was called with: the answer to the same request is no second failure. */
  const counted = new WeakSet<HooklineError>()

  /** The entry of a delivery, which is known to be of the sender, or is handled all the same. */
  function open(delivery: Delivery, message: Message | undefined, jobId?: string): Entry | undefined {
    const id = delivery.id
    const known = journal.find(home, id) ?? (jobId === undefined ? undefined : home.byJob.get(jobId))
    const entry = known ?? create(delivery, id, false)
    if (entry === undefined) return undefined
    if (entry.type === undefined && message !== undefined) entry.describe(message)
    if (jobId !== undefined && entry.jobId === undefined) journal.setJob(entry, jobId)
    return entry
  }

  function create(delivery: Delivery, key: string | undefined, isRefused: boolean): Entry | undefined {
    const at = delivery.receivedAt.getTime()
    if (journal.isForgotten('received', at, delivery.bytes, delivery.source)) return undefined
    const entry = journal.add(home, 'received', at, key, isRefused)
    entry.source = delivery.source
    entry.setBody(delivery.bytes)
    entry.setHeaders(delivery.headers)
    return entry
  }

  function stored({ delivery, message, jobId, durationMs }: ObservedStored): void {
    const other = home.byJob.get(jobId)
    const entry = open(delivery, message)
    if (entry === undefined) return
    if (other === undefined || other === entry) {
      if (entry.jobId === undefined) journal.setJob(entry, jobId)
      if (entry.state === 'failed' || entry.state === 'refused') entry.state = 'waiting'
    } else if (entry.jobId === undefined) {
      // Another message with the same key of the application: the queue keeps that one, and nothing follows for this one.
      entry.state = other.state === 'waiting' ? 'done' : other.state
    }
    entry.add({ at: journal.now(), what: 'stored', durationMs }, true)
    journal.update(entry)
  }

  /** Without an inbox the answer mostly follows at once. Hot path: both together are noted as one. */
  function handled(event: ObservedHandled): void {
    flush()
    if (event.jobId === undefined) unanswered = event
    else noteHandled(event)
  }

  function flush(): void {
    const event = unanswered
    unanswered = undefined
    if (event !== undefined) noteHandled(event)
  }

  function noteHandled({ delivery, message, attempt, durationMs, runs, jobId }: ObservedHandled): void {
    const entry = open(delivery, message, jobId)
    if (entry === undefined) return
    end(entry, 'done', jobId === undefined ? entry.attempts + 1 : attempt, durationMs)
    entry.code = entry.retryAt = undefined
    const step = { attempt: entry.attempts, durationMs, runs: runs as readonly RunLine[] }
    entry.add({ at: entry.endedAt as number, what: 'handled', ...step })
    journal.update(entry)
    series.done(name, durationMs)
  }

  function failed({ delivery, message, attempt, durationMs, runs, jobId, error, next }: ObservedFailed): void {
    const entry = open(delivery, message, jobId)
    if (entry === undefined) return
    const retryAt = typeof next === 'string' ? undefined : next.retryAt.getTime()
    const state = next === 'sender' ? 'failed' : next === 'dead_letter' ? 'dead' : 'waiting'
    end(entry, state, jobId === undefined ? entry.attempts + 1 : attempt, durationMs)
    entry.code = error.code
    entry.retryAt = retryAt
    const then = retryAt ?? (next as 'sender' | 'dead_letter')
    const step = { attempt: entry.attempts, durationMs, runs: runLines(runs), error: errorLine(error), next: then }
    entry.add({ at: entry.endedAt as number, what: 'failed', ...step })
    journal.update(entry)
    series.failed(name, runs.length === 0 ? undefined : durationMs)
    counted.add(error)
  }

  function end(entry: Entry, state: Entry['state'], attempts: number, durationMs: number): void {
    entry.state = state
    entry.attempts = attempts
    entry.durationMs = durationMs
    entry.endedAt = journal.now()
  }

  function answered(event: AnsweredEvent): void {
    const { delivery, message, error, elements } = event
    if (noteExchange(event)) return
    flush()
    if (elements.length === 0) answerOne({ event, delivery, message, error })
    for (const element of elements) {
      const { delivery } = element
      if (element.ok) answerOne({ event, delivery, message: element.message, error: undefined })
      else answerOne({ event, delivery, message: undefined, error: element.error })
    }
  }

  /** Whether a message arrived alone and for the first time, and was done at once: then it is noted. Hot path. */
  function noteExchange(event: AnsweredEvent): boolean {
    const handled = unanswered
    if (handled?.delivery !== event.delivery || event.error !== undefined) return false
    if (!journal.addExchange(home, handled, event)) return false
    unanswered = undefined
    series.done(name, handled.durationMs)
    return true
  }

  function answerOne(answer: Answer): void {
    const { event, delivery, message, error } = answer
    // The signature of a request covers it, or nothing does and it was taken as a message all the same.
    const isKnown =
      delivery.secretIndex !== undefined || message !== undefined || journal.find(home, delivery.id) !== undefined
    const entry = isKnown ? open(delivery, message) : create(delivery, undefined, true)
    if (entry === undefined) return
    const { request, status } = event
    entry.setRequest(event.request)
    if (entry.headers !== request.headers) entry.setHeaders(request.headers)
    entry.status = status
    if (entry.jobId === undefined) settle(entry, error, isKnown ? error?.status : status)
    else if (entry.state === 'waiting') entry.code ??= error?.code // It is stored, and the worker says what becomes of it.
    addSteps(entry, answer)
    journal.update(entry)
    const isStored = entry.jobId !== undefined && status < 400
    if (error !== undefined && !counted.has(error) && !isStored) series.failed(name, undefined)
  }

  /** Of a message that is not in the inbox. What was done once stays so, whatever a copy of it is answered. */
  function settle(entry: Entry, error: HooklineError | undefined, status = 200): void {
    if (entry.state === 'dead' || (entry.state === 'done' && error !== undefined)) return
    entry.state = error === undefined ? 'done' : status >= 500 ? 'failed' : 'refused'
    entry.code = error?.code
  }

  function addSteps(entry: Entry, { event, delivery, message, error }: Answer): void {
    const { receivedAt, bytes, secretIndex, source, verified: isVerified } = delivery
    const { request, status, durationMs } = event
    const at = receivedAt.getTime()
    const isCopy = entry.steps.some(({ what }) => what === 'arrived')
    // Fields that are undefined are left out when it is sent.
    if (secretIndex !== undefined || message !== undefined) {
      entry.add({ at, what: 'checked', isVerified, secretIndex, source } as Step, true)
    }
    entry.add({ at, what: 'arrived', bytes: bytes.length, isCopy, remoteAddress: request.remoteAddress } as Step, true)
    const shown = error === undefined || counted.has(error) ? undefined : errorLine(error)
    entry.add({ at: journal.now(), what: 'answered', status, durationMs, error: shown } as Step)
  }

  return receiver.observe({
    answered,
    stored,
    handled,
    failed,
    forgotten: ({ ids, source }) => void journal.forget(ids, source),
  })
}

/** Watches a receiver: how requests arrive, and how they are checked, stored, handled and answered. */

import {
  type AnsweredEvent,
  type Delivery,
  type FailedEvent,
  type HandledEvent,
  type HooklineError,
  type IgnoredEvent,
  MESSAGE_TYPES,
  type MessageType,
  type ReceivedMessage,
  type Receiver,
  type StoredEvent,
} from 'hookline'
import type { Journal } from './journal.ts'
import { addStep, describeMessage, type LoggedMessage, setBody } from './logged-message.ts'
import { errorLine, runLines } from './redact.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire.ts'

/** The maximum number of bytes of a refused body to search for a message type. */
const MAX_SCANNED = 10_000

/** Returns the message type that an untrusted body names, without parsing the body. */
function typeIn(bytes: Uint8Array): MessageType | undefined {
  const text = Buffer.from(bytes.subarray(0, MAX_SCANNED)).toString('latin1')
  const named = [...text.matchAll(/"type"\s*:\s*"(\w+)"/g)].map(([, type]) => type)
  return MESSAGE_TYPES.find((type) => named.includes(type))
}

/** The fields to clear when a message no longer waits. */
const OVER = { code: undefined, retryAt: undefined } as const

/** One message of a request, and the error if the message was refused. */
type Answer = Pick<AnsweredEvent, 'delivery' | 'message' | 'error'>

/**
 * Records the events of a receiver. The events may come in any order: a worker in the same process may handle a message before its
 * `stored` event, and a sender repeats a message that did not get a 200. Returns a function that stops the recording.
 */
export function watchReceiver(
  name: string,
  receiver: Pick<Receiver, 'observe'>,
  journal: Journal,
  series: SeriesRecorder,
): () => void {
  /** The errors that `failed` was called with, so that the answer to the same request does not count as a second failure. */
  const counted = new WeakSet<HooklineError>()

  /** Finds or creates the message of a delivery that is verified, or handled without verification. */
  function findOrCreate(
    delivery: Delivery,
    message: ReceivedMessage | undefined,
    isStored = false,
  ): LoggedMessage | undefined {
    const { id } = delivery
    const logged = journal.find(name, id) ?? create(delivery, id, false)
    if (logged === undefined) return undefined
    if (logged.type === undefined && message !== undefined) describeMessage(logged, message)
    if (isStored) logged.isStored = true
    return logged
  }

  function create(delivery: Delivery, deliveryId: string | undefined, isRefused: boolean): LoggedMessage | undefined {
    const { receivedAt, bytes, source, headers, replay } = delivery
    const arrivedAt = receivedAt.getTime()
    if (journal.isForgotten(arrivedAt, bytes, source)) return undefined
    const at = replay === undefined ? arrivedAt : journal.now() // The original of a replayed copy may have arrived days ago.
    const logged = journal.addMessage(name, { kind: 'received', at, deliveryId, isRefused })
    logged.replayId = replay?.id
    logged.source = source
    setBody(logged, bytes)
    logged.headers = headers
    return logged
  }

  function stored({ delivery, message, durationMs }: StoredEvent): void {
    const logged = findOrCreate(delivery, message, true)
    if (logged === undefined) return
    if (logged.state === 'failed' || logged.state === 'refused') logged.state = 'waiting'
    addStep(logged, { at: journal.now(), what: 'stored', durationMs }, true)
    journal.update(logged)
  }

  function handled(event: HandledEvent): void {
    series.done(name, event.durationMs)
    endAttempt(event, { state: 'done', ...OVER }, { what: 'handled' })
  }

  function ignored({ delivery, message, isStored }: IgnoredEvent): void {
    const logged = findOrCreate(delivery, message, isStored)
    if (logged === undefined) return
    const at = journal.now()
    journal.update(logged, { state: 'ignored', ...OVER, endedAt: at }, { at, what: 'ignored' })
  }

  function failed(event: FailedEvent): void {
    const { error, next, runs, durationMs } = event
    const retryAt = typeof next === 'string' ? undefined : next.retryAt.getTime()
    const state = next === 'sender' ? 'failed' : next === 'dead_letter' ? 'dead' : 'waiting'
    const after = retryAt ?? (next as 'sender' | 'dead_letter')
    endAttempt(event, { state, code: error.code, retryAt }, { what: 'failed', error: errorLine(error), next: after })
    series.failed(name, runs.length === 0 ? undefined : durationMs)
    counted.add(error)
  }

  function endAttempt(
    { delivery, message, attempt, durationMs, runs, isStored }: HandledEvent | FailedEvent,
    change: Partial<LoggedMessage>,
    step: Pick<Extract<Step, { what: 'handled' | 'failed' }>, 'what' | 'error' | 'next'>,
  ): void {
    const logged = findOrCreate(delivery, message, isStored)
    if (logged === undefined) return
    const at = journal.now()
    const attempts = isStored ? attempt : logged.attempts + 1
    const ended = { at, attempt: attempts, durationMs, runs: runLines(runs), ...step } as Step
    journal.update(logged, { ...change, attempts, durationMs, endedAt: at }, ended)
  }

  function answered(event: AnsweredEvent): void {
    if (event.elements.length === 0) answerOne(event, event)
    for (const element of event.elements) {
      answerOne(event, element.ok ? { ...element, error: undefined } : { ...element, message: undefined })
    }
  }

  function answerOne(event: AnsweredEvent, answer: Answer): void {
    const { delivery, message, error } = answer
    // A known message was verified, or handled without verification.
    const isKnown = delivery.verified || message !== undefined || journal.find(name, delivery.id) !== undefined
    const logged = isKnown ? findOrCreate(delivery, message) : create(delivery, undefined, true)
    if (logged === undefined) return
    if (message === undefined) logged.type ??= typeIn(delivery.bytes)
    const { request, status } = event
    const { method = 'POST', path = '', remoteAddress, headers } = request
    // A message with the same dedupe key but another body only adds steps. The body of the first message stays.
    const isSame = Buffer.compare(logged.body, delivery.bytes) === 0
    if (isSame) Object.assign(logged, { method, path, remoteAddress, headers })
    logged.status = status
    if (logged.isStored !== true) settle(logged, error, isKnown ? error?.status : status)
    else if (logged.state === 'waiting') logged.code ??= error?.code // A worker reports later what happens to a stored message.
    addSteps(logged, event, answer)
    journal.update(logged)
    const isTaken = logged.isStored === true && status < 400
    if (error !== undefined && !counted.has(error) && !isTaken) series.failed(name, undefined)
  }

  /** Sets the state of a message that is not in an inbox. A message that is done stays done, even if a repeated request fails. */
  function settle(logged: LoggedMessage, error: HooklineError | undefined, status = 200): void {
    const { state } = logged
    if (state === 'dead' || state === 'ignored' || (state === 'done' && error !== undefined)) return
    logged.state = error === undefined ? 'done' : status >= 500 ? 'failed' : 'refused'
    logged.code = error?.code
  }

  function addSteps(logged: LoggedMessage, event: AnsweredEvent, { delivery, message, error }: Answer): void {
    const { receivedAt, bytes, secretIndex, source, verified } = delivery
    const [isVerified, hasHeader] = [verified !== false, verified === 'header' || undefined]
    const { request, status, durationMs } = event
    const at = receivedAt.getTime()
    const isCopy = logged.steps.some(({ what }) => what === 'arrived')
    const shown = error === undefined || counted.has(error) ? undefined : errorLine(error)
    // The cast allows undefined fields, because JSON omits them.
    if (secretIndex !== undefined || message !== undefined) {
      addStep(logged, { at, what: 'checked', isVerified, hasHeader, secretIndex, source } as Step, true)
    }
    const { remoteAddress } = request
    addStep(logged, { at, what: 'arrived', bytes: bytes.length, isCopy, remoteAddress } as Step, true)
    // A stored message is answered as soon as it is stored. By now, a worker in the same process may already have handled the message.
    const storedAt = logged.steps.findLast(({ what, at: time }) => what === 'stored' && time >= at)?.at
    addStep(logged, { at: storedAt ?? journal.now(), what: 'answered', status, durationMs, error: shown } as Step)
  }

  return receiver.observe({
    answered,
    stored,
    handled,
    ignored,
    failed,
    forgotten: ({ ids, source }) => void journal.forget(ids, source),
  })
}

/** Watches a receiver: what arrives, how it is checked, stored, handled and answered. */

import type { Delivery } from '../handling/delivery.ts'
import type {
  AnsweredEvent,
  ObservedFailed,
  ObservedHandled,
  ObservedIgnored,
  ObservedStored,
} from '../handling/observer.ts'
import { textMember } from '../message/elements.ts'
import type { HooklineError } from '../message/error.ts'
import type { MessageType, ReceivedMessage } from '../message/message.ts'
import { MESSAGE_TYPES } from '../message/type-table.ts'
import type { Receiver } from '../receiver/api.ts'
import type { Clock } from '../time/clock.ts'
import type { JournalWriter } from './journal.ts'
import { addStep, describeMessage, type LoggedMessage, setBody } from './logged-message.ts'
import { errorLine, runLines } from './redact.ts'
import { createSample, type Sample } from './sample.ts'
import type { SeriesRecorder } from './series.ts'
import type { Step } from './wire.ts'

/** So much of a body that was refused is looked at. */
const MAX_SCANNED = 10_000

/** The type that a body names which was not parsed: strangers may have sent it. */
function typeIn(bytes: Uint8Array): MessageType | undefined {
  const found = textMember(bytes.subarray(0, MAX_SCANNED), 'type')
  return MESSAGE_TYPES.find((type) => type === found)
}

/** One message of a request, and why it was refused. */
type Answer = Pick<AnsweredEvent, 'delivery' | 'message' | 'error'>

/**
 * Keeps what happens at a receiver. Its events come in any order: a worker of the same process may handle a message before it is
 * known to be stored, and a sender repeats what it was not answered 200 for. Returns what stops that.
 */
export function watchReceiver(
  name: string,
  receiver: Pick<Receiver, 'observe'>,
  journal: JournalWriter,
  series: SeriesRecorder,
  machine?: Clock,
): () => void {
  const part = journal.part(name)
  const samples = { stored: createSample(machine), handled: createSample(machine), answered: createSample(machine) }
  /** The errors that `failed` was called with: the answer to the same request is no second failure. */
  const counted = new WeakSet<HooklineError>()

  /**
   * The message of a delivery, which is known to be of the sender, or is handled all the same.
   *
   * @param sample Of an event that says that it succeeded: undefined is returned for one that is not in the sample.
   */
  function open(
    delivery: Delivery,
    message: ReceivedMessage | undefined,
    sample: Sample | undefined,
    isStored = false,
  ): LoggedMessage | undefined {
    const { id } = delivery
    const of = sample === undefined ? 1 : sample(id)
    const known = part.byId.get(id)
    const logged = known ?? (of === undefined ? undefined : create(delivery, id, false))
    if (logged === undefined) return undefined
    if (logged !== known && of !== 1) logged.of = of
    if (logged.type === undefined && message !== undefined) describeMessage(logged, message)
    if (isStored) logged.isStored = true
    return logged
  }

  function create(delivery: Delivery, deliveryId: string | undefined, isRefused: boolean): LoggedMessage | undefined {
    const { receivedAt, bytes, source, headers } = delivery
    const at = receivedAt.getTime()
    if (journal.isForgotten(at, bytes, source)) return undefined
    const logged = journal.add(part, { kind: 'received', at, deliveryId, isRefused })
    logged.source = source
    setBody(logged, bytes)
    logged.headers = headers
    return logged
  }

  function stored({ delivery, message, durationMs }: ObservedStored): void {
    const logged = open(delivery, message, message && samples.stored, true)
    if (logged === undefined) return
    if (logged.state === 'failed' || logged.state === 'refused') logged.state = 'waiting'
    addStep(logged, { at: journal.now(), what: 'stored', durationMs }, true)
    journal.update(logged)
  }

  function handled(event: ObservedHandled): void {
    series.done(name, event.durationMs)
    const sample = event.attempt === 1 ? samples.handled : undefined
    end(event, sample, { state: 'done', code: undefined, retryAt: undefined }, { what: 'handled' })
  }

  function ignored({ delivery, message, isStored }: ObservedIgnored): void {
    const logged = open(delivery, message, samples.handled, isStored)
    if (logged === undefined) return
    const at = journal.now()
    Object.assign(logged, { state: 'ignored', code: undefined, retryAt: undefined, endedAt: at })
    addStep(logged, { at, what: 'ignored' })
    journal.update(logged)
  }

  function failed(event: ObservedFailed): void {
    const { error, next, runs, durationMs } = event
    const retryAt = typeof next === 'string' ? undefined : next.retryAt.getTime()
    const state = next === 'sender' ? 'failed' : next === 'dead_letter' ? 'dead' : 'waiting'
    const step = {
      what: 'failed',
      error: errorLine(error),
      next: retryAt ?? (next as 'sender' | 'dead_letter'),
    } as const
    end(event, undefined, { state, code: error.code, retryAt }, step)
    series.failed(name, runs.length === 0 ? undefined : durationMs)
    counted.add(error)
  }

  function end(
    { delivery, message, attempt, durationMs, runs, isStored }: ObservedHandled | ObservedFailed,
    sample: Sample | undefined,
    change: Partial<LoggedMessage>,
    step: Pick<Extract<Step, { what: 'handled' | 'failed' }>, 'what' | 'error' | 'next'>,
  ): void {
    const logged = open(delivery, message, sample, isStored)
    if (logged === undefined) return
    const at = journal.now()
    const attempts = isStored ? attempt : logged.attempts + 1
    Object.assign(logged, { ...change, attempts, durationMs, endedAt: at } satisfies Partial<LoggedMessage>)
    const replayId = delivery.replay?.id
    addStep(logged, { at, attempt: attempts, durationMs, runs: runLines(runs), replayId, ...step } as Step)
    journal.update(logged)
  }

  function answered(event: AnsweredEvent): void {
    if (event.elements.length === 0) answerOne(event, event)
    for (const element of event.elements) {
      answerOne(event, element.ok ? { ...element, error: undefined } : { ...element, message: undefined })
    }
  }

  function answerOne(event: AnsweredEvent, answer: Answer): void {
    const { delivery, message, error } = answer
    // A signature covers it, or nothing does and it was handled as a message all the same.
    const isKnown = delivery.verified || message !== undefined || part.byId.has(delivery.id)
    const sample = error === undefined ? samples.answered : undefined
    const logged = isKnown ? open(delivery, message, sample) : create(delivery, undefined, true)
    if (logged === undefined) return
    if (message === undefined) logged.type ??= typeIn(delivery.bytes)
    const { request, status } = event
    const { method = 'POST', path = '', originalPath = path, remoteAddress, headers } = request
    // Of another message with the same key of the application, only the steps are kept: the body stays that of the first.
    const isSame = Buffer.compare(logged.body, delivery.bytes) === 0
    if (isSame) Object.assign(logged, { method, path: originalPath, ownPath: path, remoteAddress, headers })
    logged.status = status
    if (logged.isStored !== true) settle(logged, error, isKnown ? error?.status : status)
    else if (logged.state === 'waiting') logged.code ??= error?.code // It is stored, and the worker says what follows.
    addSteps(logged, event, answer)
    journal.update(logged)
    const isTaken = logged.isStored === true && status < 400
    if (error !== undefined && !counted.has(error) && !isTaken) series.failed(name, undefined)
  }

  /** Sets the state of a message that is not in the inbox. A message that was done stays done, whatever a copy of it is answered. */
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
    // Fields that are undefined are left out when it is sent.
    if (secretIndex !== undefined || message !== undefined) {
      addStep(logged, { at, what: 'checked', isVerified, hasHeader, secretIndex, source } as Step, true)
    }
    const { remoteAddress } = request
    addStep(logged, { at, what: 'arrived', bytes: bytes.length, isCopy, remoteAddress } as Step, true)
    addStep(logged, { at: journal.now(), what: 'answered', status, durationMs, error: shown } as Step)
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

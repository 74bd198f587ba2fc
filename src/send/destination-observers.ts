/** Passes on the events of a destination: first to diagnostics channels, callbacks and the log, then to the observers. */

import { channel } from 'node:diagnostics_channel'
import { notify } from '../kit/callbacks.ts'
import type { Line } from '../kit/log.ts'
import { Observers } from '../kit/observers.ts'
import { createWarning } from '../kit/warning.ts'
import { describeError, HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import type { DeadLetter, StoredJob } from '../store/queue-types.ts'
import type { CircuitEvent } from './circuit.ts'
import type { DestinationObserver, FailureReason, ObservedReport } from './destination-events.ts'
import type { DestinationSettings } from './destination-options.ts'
import type { Attempt } from './sender-types.ts'
import { readMessage } from './stored-submission.ts'

/** The events that observers receive, and `deadLetter`, which only the callback `onDeadLetter` receives. */
interface Events extends DestinationObserver {
  deadLetter?(letter: DeadLetter): void
}

export type DestinationObservers = Observers<Events>

const attemptChannel = channel('hookline:attempt')
const circuitChannel = channel('hookline:circuit')
const skippedChannel = channel('hookline:skipped')

/**
 * @param onDeadLetter Receives each dead letter as the queue stores it.
 * @param hasOtherUrls Returns whether messages currently go to more than one URL.
 */
export function createDestinationObservers(
  { clock, onAttempt, onCircuit, log }: DestinationSettings,
  onDeadLetter: (letter: DeadLetter) => unknown,
  hasOtherUrls: () => boolean,
): DestinationObservers {
  const warnOfAttempt = createWarning('onAttempt', 'HOOKLINE_ON_ATTEMPT')
  const warnOfCircuit = createWarning('onCircuit', 'HOOKLINE_ON_CIRCUIT')
  const warnOfDeadLetter = createWarning('onDeadLetter', 'HOOKLINE_ON_DEAD_LETTER')
  const failingUrls = new Set<string>() // URLs that failed while another URL accepted the message, and have accepted no message since.

  /** Logs that a URL misses messages: once, until the URL accepts a message again. */
  function writeMissed(attempt: Attempt): void {
    const { url, ok, error } = attempt
    if (ok) failingUrls.delete(url)
    if (ok || failingUrls.has(url) || error === 'closed') return
    failingUrls.add(url)
    log.write(missedLine(attempt))
  }

  return new Observers<Events>(clock, ['queued', 'skipped', 'attempted', 'circuit', 'forgotten'], {
    skipped: (event) => skippedChannel.publish(event),
    attempted(report) {
      attemptChannel.publish(report)
      if (onAttempt !== undefined) notify(() => onAttempt(report), warnOfAttempt)
      if (report.status !== 'delivered') return log.write(failedLine(report))
      for (const attempt of report.latest) writeMissed(attempt)
    },
    circuit(event) {
      circuitChannel.publish(event)
      if (onCircuit !== undefined) notify(() => onCircuit(event), warnOfCircuit)
      log.write(circuitLine(event, hasOtherUrls()))
    },
    deadLetter: (letter) => void notify(() => onDeadLetter(letter), warnOfDeadLetter),
  })
}

/** The fields of a report that do not come from the job. */
export type ReportDetails = Omit<ObservedReport, 'id' | 'message' | 'bytes'>

export const UNREADABLE: ReportDetails = { status: 'failed', latest: [], attempts: [], reason: 'unreadable' }

/**
 * A report that parses its message only when the message is read. It is a class, because an object literal with a getter cost a destination
 * 8 % of its processor time.
 */
export class JobReport implements ObservedReport {
  readonly #body: Uint8Array
  readonly status: ReportDetails['status']
  readonly id: string
  readonly latest: readonly Attempt[]
  readonly attempts: readonly Attempt[]
  declare readonly retryAt?: Date
  declare readonly reason?: FailureReason
  declare readonly error?: unknown

  constructor({ id, body }: StoredJob, { status, latest, attempts, retryAt, reason, error }: ReportDetails) {
    this.#body = body
    this.status = status
    this.id = id
    this.latest = latest
    this.attempts = attempts
    if (retryAt !== undefined) this.retryAt = retryAt
    if (reason !== undefined) this.reason = reason
    if (error !== undefined) this.error = error
  }

  get bytes(): Uint8Array {
    return this.#body
  }

  get message(): Message {
    if (this.reason !== 'unreadable') return readMessage(this.#body)
    throw new HooklineError('internal', 'The `message` of an unreadable job cannot be read. Check `reason` first.')
  }
}

/** Describes a failed round: which message it posted, what follows, and what each URL answered ("Outbound event delivery", Errors). */
function failedLine({ id, latest, attempts, retryAt, reason, error }: ObservedReport): Line {
  const cause = error === undefined ? latest.map(describeAttempt).join('; ') : describeError(error)
  if (reason === undefined) {
    const at = retryAt?.toISOString()
    const text = `attempt_failed: no URL accepted message ${id}. The next attempt follows at ${at}. ${cause}`
    return { level: 'warn', code: 'attempt_failed', text, fields: { id, retryAt: at } }
  }
  const advice =
    reason === 'unreadable'
      ? `Read it with destination.deadLetters(), then call destination.redrive or destination.drop with ['${id}'].`
      : `Fix the cause, then call destination.redrive(['${id}']).`
  const text = `dead letter ${id}: ${reason}, because ${WHY[reason]}. Attempts: ${attempts.length}. ${advice} ${cause}`
  return { level: 'error', code: 'dead_letter', text, fields: { id, reason, attempts: attempts.length }, thrown: error }
}

/**
 * Describes a URL that misses a message: the attempt at this URL failed, but another URL accepted the message ("Outbound event delivery",
 * Errors).
 */
function missedLine(attempt: Attempt): Line {
  const { url } = attempt
  const text = `url_failed: ${url} does not get messages that another URL accepts. ${describeAttempt(attempt)}. To deliver to each URL, create a destination for each.`
  return { level: 'warn', code: 'url_failed', text, fields: { url } }
}

function circuitLine({ url, state, probeAt, cause }: CircuitEvent, hasOthers: boolean): Line {
  if (state === 'closed') {
    const held = hasOthers
      ? 'It does not get the messages that another URL has accepted in the meantime.'
      : 'The held messages are now sent.'
    const text = `circuit_closed: ${url} accepts messages again. ${held}`
    return { level: 'warn', code: 'circuit_closed', text, fields: { url } }
  }
  const at = probeAt?.toISOString()
  const follows = hasOthers
    ? 'It does not get messages that another URL accepts in the meantime. To deliver to each URL, create a destination for each.'
    : 'When the URL accepts a message within four hours, all held messages are sent.'
  const text = `circuit_open: messages for ${url} are held. One message is posted at ${at} to probe the URL. ${describeAttempt(cause)}. ${follows}`
  return { level: 'warn', code: 'circuit_open', text, fields: { url, probeAt: at } }
}

const WHY: Readonly<Record<FailureReason, string>> = {
  refused: 'every URL gave a final response or a final error',
  window_over: 'its four hours are over',
  switched_off: 'the destination was disabled when its four hours ended',
  circuit_open: 'the circuits of its URLs were open when its four hours ended',
  transform_failed: 'its `filter` or `transform` failed',
  unreadable: 'its job in the queue was lost or changed',
}

/** Describes an attempt without the response body and without the query of the URL: both may hold secrets. */
function describeAttempt({ url, status, error, reason, durationMs }: Attempt): string {
  const outcome = status === undefined ? `${error} (${reason})` : `status ${status}`
  return `POST ${url}: ${outcome} after ${durationMs} ms`
}

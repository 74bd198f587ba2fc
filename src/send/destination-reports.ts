/** The one place where a destination tells what happens: to its observers, of which channels, callbacks and the log are the first. */

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

/** An observer of a user, and what only the callbacks hear. */
interface Events extends DestinationObserver {
  deadLetter?(letter: DeadLetter): void
}

export type DestinationEvents = Observers<Events>

const attemptChannel = channel('hookline:attempt')
const circuitChannel = channel('hookline:circuit')
const skippedChannel = channel('hookline:skipped')

/**
 * @param onDeadLetter Gets a dead letter as the queue has it.
 * @param hasOtherUrls Whether a message goes to more than one URL now.
 */
export function createDestinationEvents(
  { clock, onAttempt, onCircuit, log }: DestinationSettings,
  onDeadLetter: (letter: DeadLetter) => unknown,
  hasOtherUrls: () => boolean,
): DestinationEvents {
  const warnOfAttempt = createWarning('onAttempt', 'HOOKLINE_ON_ATTEMPT')
  const warnOfCircuit = createWarning('onCircuit', 'HOOKLINE_ON_CIRCUIT')
  const warnOfDeadLetter = createWarning('onDeadLetter', 'HOOKLINE_ON_DEAD_LETTER')
  const failing = new Set<string>() // The URLs that failed while another accepted, until they accept.

  function writeMissed(attempt: Attempt): void {
    const { url, ok, error } = attempt
    if (ok) failing.delete(url)
    if (ok || failing.has(url) || error === 'closed') return
    failing.add(url)
    log.write(missedLine(attempt))
  }

  return new Observers<Events>(clock, ['queued', 'skipped', 'attempted', 'circuit', 'forgotten'], {
    skipped: (event) => skippedChannel.publish(event),
    attempted(report) {
      attemptChannel.publish(report)
      if (onAttempt !== undefined) notify(() => onAttempt(report), warnOfAttempt)
      if (report.status !== 'delivered') return log.write(lineOf(report))
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

/** A report without what the job says itself. */
export type ReportDetails = Omit<ObservedReport, 'id' | 'message' | 'bytes'>

export const UNREADABLE: ReportDetails = { status: 'failed', latest: [], attempts: [], reason: 'unreadable' }

/** Parses its message only when it is read. A class: an object literal with a getter cost a destination 8 % of its processor time. */
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
    const text = 'A report has no message when its `reason` is unreadable. Got a read of it. Look at `reason` first.'
    throw new HooklineError('internal', text)
  }
}

/** The line of a failed round: which message, what follows, and what each URL answered ("Outbound event delivery", Errors). */
function lineOf({ id, latest, attempts, retryAt, reason, error }: ObservedReport): Line {
  const found = error === undefined ? latest.map(describe).join('; ') : describeError(error)
  if (reason === undefined) {
    const at = retryAt?.toISOString()
    const text = `attempt_failed: message ${id}. The next attempt follows at ${at}. ${found}`
    return { level: 'warn', code: 'attempt_failed', text, fields: { id, retryAt: at } }
  }
  const advice =
    reason === 'unreadable'
      ? `Look at it with destination.deadLetters(), then call destination.drop(['${id}']).`
      : `Fix the cause, then call destination.redrive(['${id}']).`
  const text = `dead letter ${id}: ${reason}, because ${WHY[reason]}. Attempts: ${attempts.length}. ${advice} ${found}`
  return { level: 'error', code: 'dead_letter', text, fields: { id, reason, attempts: attempts.length }, thrown: error }
}

/** A 2xx from any URL ends a message ("Outbound event delivery", Errors). */
function missedLine(attempt: Attempt): Line {
  const { url } = attempt
  const text = `url_failed: ${url} does not get messages that another URL accepts. ${describe(attempt)}. To deliver to each URL, create a destination for each.`
  return { level: 'warn', code: 'url_failed', text, fields: { url } }
}

function circuitLine({ url, state, probeAt, cause }: CircuitEvent, hasOthers: boolean): Line {
  if (state === 'closed') {
    const held = hasOthers
      ? 'It does not get those that another URL accepted meanwhile.'
      : 'Those that were held are sent.'
    const text = `circuit_closed: ${url} accepts messages again. ${held}`
    return { level: 'warn', code: 'circuit_closed', text, fields: { url } }
  }
  const at = probeAt?.toISOString()
  const follows = hasOthers
    ? 'It does not get messages that another URL accepts meanwhile. To deliver to each URL, create a destination for each.'
    : 'When it accepts one within four hours, the others follow.'
  const text = `circuit_open: messages for ${url} are held, and one is tried at ${at}. ${describe(cause)}. ${follows}`
  return { level: 'warn', code: 'circuit_open', text, fields: { url, probeAt: at } }
}

const WHY: Readonly<Record<FailureReason, string>> = {
  refused: 'every URL gave a final response',
  window_over: 'its four hours are over',
  switched_off: 'the destination was disabled when its four hours ended',
  circuit_open: 'the circuits of its URLs were open when its four hours ended',
  transform_failed: 'its `filter` or `transform` failed',
  unreadable: 'it is not a message of a destination',
}

/** Names neither the response body nor the query of the URL, which may hold secrets. */
function describe({ url, status, error, reason, durationMs }: Attempt): string {
  const outcome = status === undefined ? `${error} (${reason})` : `status ${status}`
  return `POST ${url}: ${outcome} after ${durationMs} ms`
}

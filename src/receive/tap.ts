/** Reports what happens at a receiver: to its log and `onError`, to diagnostics channels, and to observers. */

import { channel } from 'node:diagnostics_channel'
import { notify } from '../kit/callbacks.ts'
import type { Clock } from '../kit/clock.ts'
import type { Line } from '../kit/log.ts'
import { type EventOf, Observers } from '../kit/observers.ts'
import type { Report } from '../kit/report.ts'
import { createWarning } from '../kit/warning.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Attempt } from './attempt.ts'
import type { Delivery, ReceivedElement } from './delivery.ts'
import type { FailedEvent, FailedRequest, ReceiverObserver } from './events.ts'
import { describe, type Subject } from './log-lines.ts'
import type { DeadLetterMessage } from './stored-message.ts'

/** `answered` and `forgotten` have no channel, because not all code of the process may see bodies of refused requests and ids of users. */
const channels = {
  received: channel('hookline:received'),
  refused: channel('hookline:refused'),
  unplanned: channel('hookline:unplanned'),
  stored: channel('hookline:stored'),
  handled: channel('hookline:handled'),
  ignored: channel('hookline:ignored'),
  failed: channel('hookline:failed'),
  dead: channel('hookline:dead'),
}

type Published = keyof typeof channels

const OBSERVED = [...(Object.keys(channels) as Published[]), 'answered', 'forgotten'] as const

type Failure = Pick<FailedEvent, 'error' | 'next' | 'attempt' | 'handlers'>

/** An attempt that has ended, perhaps before a handler was called. */
export type Tried = Pick<Attempt, 'delivery' | 'isStored' | 'startedAt' | 'runs' | 'endTrace'> & {
  /** The message; undefined when no handler saw it. */
  readonly message: ReceivedMessage | undefined
}

/** The part of an answer that observers see. */
export interface Answered {
  readonly status: number
  readonly error?: HooklineError
  readonly elements?: readonly ReceivedElement[]
}

export class Tap {
  readonly observers: Observers<ReceiverObserver>
  readonly #report: Report<FailedRequest>
  readonly #onDeadLetter: ((letter: DeadLetterMessage) => unknown) | undefined
  readonly #warnOfDeadLetter = createWarning('onDeadLetter', 'HOOKLINE_ON_DEAD_LETTER')
  readonly #clock: Clock

  constructor(
    report: Report<FailedRequest>,
    onDeadLetter: ((letter: DeadLetterMessage) => unknown) | undefined,
    clock: Clock,
  ) {
    this.observers = new Observers<ReceiverObserver>(clock, OBSERVED)
    this.#report = report
    this.#onDeadLetter = onDeadLetter
    this.#clock = clock
  }

  isHeard(name: Published): boolean {
    return channels[name].hasSubscribers || this.observers.current !== undefined
  }

  publish<Name extends Published>(name: Name, event: EventOf<ReceiverObserver, Name>): void {
    if (channels[name].hasSubscribers) channels[name].publish(event)
    if (this.observers.current !== undefined) this.observers.publish(name, event)
  }

  /** Begins an attempt. Measures the attempt only if an observer or a subscriber gets the result. */
  beginAttempt(given: Omit<Attempt, 'clock' | 'startedAt' | 'runs' | 'isStored' | 'isIgnored'>): Attempt {
    const { message, wire, delivery, deadline, number, progress, batching } = given
    const clock = this.#clock
    const isMeasured = this.isHeard('handled') || this.isHeard('failed')
    const startedAt = isMeasured ? clock.monotonic() : undefined
    const runs = isMeasured ? [] : undefined
    const isStored = progress !== undefined
    const measured = { clock, startedAt, runs, isStored, isIgnored: false }
    return { message, wire, delivery, deadline, number, progress, batching, ...measured }
  }

  /** Publishes that no handler matched or, if the attempt was measured, that every handler succeeded. */
  publishHandled(attempt: Attempt): void {
    const { message, delivery, number, startedAt, runs = [], isIgnored, isStored } = attempt
    if (isIgnored) this.publish('ignored', { message, delivery, isStored })
    else if (startedAt !== undefined) {
      const durationMs = this.#clock.monotonic() - startedAt
      this.publish('handled', { message, delivery, attempt: number, durationMs, runs, isStored })
    }
    attempt.endTrace?.()
  }

  /** Reports that handlers of a message failed, or that a message of an inbox never reached them. */
  reportFailed(tried: Tried, failure: Failure, line: Partial<Line>, request = requestOf(tried.delivery)): void {
    this.#report(failure.error, request, line)
    if (this.isHeard('failed')) {
      const { message, delivery, startedAt, runs = [], isStored } = tried
      const now = this.#clock.monotonic()
      this.publish('failed', { message, delivery, durationMs: now - (startedAt ?? now), runs, isStored, ...failure })
    }
    tried.endTrace?.(failure.error)
  }

  /** Reports an error that came after the answer, or that does not affect the answer. */
  reportLate(error: HooklineError, subject: Subject, request = requestOf(subject.delivery)): void {
    this.#report(error, request, describe(error, subject))
  }

  /** Reports a dead letter. Calls `read` only if `onDeadLetter`, an observer or a subscriber gets the letter. */
  reportDeadLetter(read: () => DeadLetterMessage): void {
    if (this.#onDeadLetter === undefined && !this.isHeard('dead')) return
    const letter = read()
    this.publish('dead', letter)
    notify(() => this.#onDeadLetter?.(letter), this.#warnOfDeadLetter)
  }

  /** Reports a request, or one of its messages, that no handler saw. */
  reportRefused(error: HooklineError, request: FailedRequest, line: Partial<Line> | null): void {
    this.#report(error, request, line)
    this.publish('refused', { error, request })
  }

  /**
   * Publishes the answer, and returns it.
   *
   * @param startedAt When the request arrived, on the monotonic clock.
   */
  publishAnswered<Answer extends Answered>(
    request: FailedRequest & { readonly method?: string | undefined },
    { delivery, message }: { readonly delivery: Delivery; readonly message: ReceivedMessage | undefined },
    answer: Answer,
    startedAt: number,
  ): Answer {
    if (this.observers.current === undefined) return answer
    const { headers, path, remoteAddress, method } = request
    this.observers.publish('answered', {
      request: { headers, path, remoteAddress, method }, // A copy, because the original refers to the connection and keeps it in memory.
      delivery,
      message,
      status: answer.status,
      error: answer.error,
      durationMs: this.#clock.monotonic() - startedAt,
      elements: answer.elements ?? [],
    })
    return answer
  }
}

function requestOf({ headers }: Delivery): FailedRequest {
  return { headers, path: undefined, remoteAddress: undefined }
}

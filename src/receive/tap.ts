/** The one place where a receiver tells what happens: to its log and `onError`, to diagnostics channels, to observers. */

import { channel } from 'node:diagnostics_channel'
import { notify } from '../kit/callbacks.ts'
import type { Clock } from '../kit/clock.ts'
import type { Line } from '../kit/log.ts'
import { createObservers } from '../kit/observers.ts'
import type { Report } from '../kit/report.ts'
import { createWarning } from '../kit/warning.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Attempt } from './attempt.ts'
import type { Delivery, ReceivedElement } from './delivery.ts'
import type { FailedEvent, FailedRequest, ReceiverObserver } from './events.ts'
import { describe, type Subject } from './log-lines.ts'
import type { DeadLetterMessage } from './stored-message.ts'

/** Its bodies of refused requests are not for all of the process, so two events have no channel: `answered` and `forgotten`. */
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
type EventOf<Name extends Published> = Parameters<NonNullable<ReceiverObserver[Name]>>[0]

const OBSERVED = [...(Object.keys(channels) as Published[]), 'answered', 'forgotten'] as const

export type Tap = ReturnType<typeof createTap>

type Failure = Pick<FailedEvent, 'error' | 'next' | 'attempt' | 'handlers'>

/** An attempt as far as it came. */
export type Tried = Pick<Attempt, 'delivery' | 'isStored' | 'startedAt' | 'runs'> & {
  /** Undefined when no handler saw it. */
  readonly message: ReceivedMessage | undefined
}

/** The answer to a request, as far as observers see it. */
export interface Answered {
  readonly status: number
  readonly error?: HooklineError
  readonly elements?: readonly ReceivedElement[]
}

export function createTap(
  report: Report<FailedRequest>,
  onDeadLetter: ((letter: DeadLetterMessage) => unknown) | undefined,
  clock: Clock,
) {
  const observers = createObservers<ReceiverObserver>(clock, OBSERVED)
  const warnOfDeadLetter = createWarning('onDeadLetter', 'HOOKLINE_ON_DEAD_LETTER')

  function isHeard(name: Published): boolean {
    return channels[name].hasSubscribers || observers.current !== undefined
  }

  function publish<Name extends Published>(name: Name, event: EventOf<Name>): void {
    if (channels[name].hasSubscribers) channels[name].publish(event)
    if (observers.current !== undefined) observers.publish(name, event as never)
  }

  return {
    observers,
    isHeard,
    publish,

    /** Begins an attempt: measures it when something needs that. */
    begin(given: Omit<Attempt, 'clock' | 'startedAt' | 'runs' | 'isStored' | 'isIgnored'>): Attempt {
      const isMeasured = isHeard('handled') || isHeard('failed')
      return {
        ...given,
        clock,
        startedAt: isMeasured ? clock.monotonic() : undefined,
        runs: isMeasured ? [] : undefined,
        isStored: given.progress !== undefined,
        isIgnored: false,
      }
    },

    /** Every handler succeeded, or none matched. Tells nothing of handlers that started before anything needed it. */
    handled({ message, delivery, number, startedAt, runs = [], isIgnored, isStored }: Attempt): void {
      if (isIgnored) publish('ignored', { message, delivery, isStored })
      else if (startedAt !== undefined) {
        const durationMs = clock.monotonic() - startedAt
        publish('handled', { message, delivery, attempt: number, durationMs, runs, isStored })
      }
    },

    /** Handlers of a message failed, or a message of an inbox never reached them. */
    failed(tried: Tried, failure: Failure, line: Partial<Line>, request = requestOf(tried.delivery)): void {
      report(failure.error, request, line)
      if (!isHeard('failed')) return
      const { message, delivery, startedAt, runs = [], isStored } = tried
      const now = clock.monotonic()
      publish('failed', { message, delivery, durationMs: now - (startedAt ?? now), runs, isStored, ...failure })
    },

    /** Something failed after the answer, or beside it. */
    failedLate(error: HooklineError, subject: Subject, request = requestOf(subject.delivery)): void {
      report(error, request, describe(error, subject))
    },

    /** A message became a dead letter. */
    dead(read: () => DeadLetterMessage): void {
      if (onDeadLetter === undefined && !isHeard('dead')) return
      const letter = read()
      publish('dead', letter)
      if (onDeadLetter !== undefined) notify(() => onDeadLetter(letter), warnOfDeadLetter)
    },

    /** No handler saw a request, or a message of it. */
    refused(error: HooklineError, request: FailedRequest, line: Partial<Line> | null): void {
      report(error, request, line)
      publish('refused', { error, request })
    },

    /** @param since When the request arrived, on the monotonic clock. */
    answered<Answer extends Answered>(
      request: FailedRequest & { readonly method?: string },
      { delivery, message }: { readonly delivery: Delivery; readonly message: ReceivedMessage | undefined },
      answer: Answer,
      since: number,
    ): Answer {
      if (observers.current === undefined) return answer
      const { headers, path, remoteAddress, method } = request
      observers.publish('answered', {
        request: { headers, path, remoteAddress, method }, // That of a host holds its connection.
        delivery,
        message,
        status: answer.status,
        error: answer.error,
        durationMs: clock.monotonic() - since,
        elements: answer.elements ?? [],
      })
      return answer
    },
  }
}

function requestOf({ headers }: Delivery): FailedRequest {
  return { headers, path: undefined, remoteAddress: undefined }
}

/** The one place where a receiver tells what happens: to its log and `onError`, to diagnostics channels, to observers. */

import { channel } from 'node:diagnostics_channel'
import type { EndpointRequest } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import type { ReceivedMessage } from '../message/message.ts'
import type { Line } from '../options/log.ts'
import type { Report } from '../options/report.ts'
import type { Clock } from '../time/clock.ts'
import type { Attempt } from './attempt.ts'
import type { Delivery, ReceivedElement } from './delivery.ts'
import type {
  FailedEvent,
  FailedRequest,
  HandledEvent,
  IgnoredEvent,
  ReceivedEvent,
  RejectedEvent,
  StoredEvent,
  UnplannedEvent,
} from './diagnostics.ts'
import { describe, type Subject } from './log-lines.ts'
import type { ReceiverObservers } from './observer.ts'

const received = channel('hookline:received')
const unplanned = channel('hookline:unplanned')
const rejected = channel('hookline:rejected')
const stored = channel('hookline:stored')
const handled = channel('hookline:handled')
const ignored = channel('hookline:ignored')
const failed = channel('hookline:failed')

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

export function createTap(report: Report<FailedRequest>, observers: ReceiverObservers, clock: Clock) {
  function isObserved(): boolean {
    return observers.current !== undefined
  }

  return {
    /** Begins an attempt: measures it when something needs that. */
    begin(given: Omit<Attempt, 'clock' | 'startedAt' | 'runs' | 'isStored' | 'isIgnored'>): Attempt {
      const isMeasured = isObserved() || handled.hasSubscribers || failed.hasSubscribers
      return {
        ...given,
        clock,
        startedAt: isMeasured ? clock.monotonic() : undefined,
        runs: isObserved() ? [] : undefined,
        isStored: given.progress !== undefined,
        isIgnored: false,
      }
    },

    /** Returns when storing starts; undefined while nothing needs that. */
    startOfStoring(): number | undefined {
      return isObserved() || stored.hasSubscribers ? clock.monotonic() : undefined
    },

    received(message: ReceivedMessage, delivery: Delivery): void {
      if (received.hasSubscribers) received.publish({ message, delivery } satisfies ReceivedEvent)
    },

    unplanned(event: UnplannedEvent): void {
      if (unplanned.hasSubscribers) unplanned.publish(event)
    },

    /** @param message Undefined for an authentic one that is invalid: channels leave it out. */
    stored(message: ReceivedMessage | undefined, delivery: Delivery, startedAt: number | undefined): void {
      if (startedAt === undefined) return
      const durationMs = clock.monotonic() - startedAt
      if (message !== undefined && stored.hasSubscribers) {
        stored.publish({ message, delivery, durationMs } satisfies StoredEvent)
      }
      if (isObserved()) observers.publish('stored', { message, delivery, durationMs })
    },

    /** Every handler succeeded, or none matched. Tells nothing of handlers that started before anything needed it. */
    handled(attempt: Attempt): void {
      const { message, delivery, number, startedAt, runs = [], isIgnored, isStored } = attempt
      if (isIgnored) {
        const event: IgnoredEvent = { message, delivery }
        if (ignored.hasSubscribers) ignored.publish(event)
        if (isObserved()) observers.publish('ignored', { ...event, isStored })
      } else if (startedAt !== undefined) {
        const event: HandledEvent = { message, delivery, attempt: number, durationMs: clock.monotonic() - startedAt }
        if (handled.hasSubscribers) handled.publish(event)
        if (isObserved()) observers.publish('handled', { ...event, runs, isStored })
      }
    },

    /** Handlers of a message failed, or a message of an inbox never reached them. */
    failed(tried: Tried, failure: Failure, line: Partial<Line>, request = requestOf(tried.delivery)): void {
      report(failure.error, request, line)
      const { message, delivery, startedAt, runs = [], isStored } = tried
      const now = clock.monotonic()
      const event: FailedEvent = { message, delivery, durationMs: now - (startedAt ?? now), ...failure }
      if (failed.hasSubscribers) failed.publish(event)
      if (isObserved()) observers.publish('failed', { ...event, runs, isStored })
    },

    /** Something failed after the answer, or beside it. */
    failedLate(error: HooklineError, subject: Subject, request = requestOf(subject.delivery)): void {
      report(error, request, describe(error, subject))
    },

    /** The queue made a dead letter by itself: channels leave it out. */
    unreadable(delivery: Delivery, error: HooklineError, line: Partial<Line>): void {
      report(error, requestOf(delivery), line)
      const failure = { error, next: 'dead_letter', attempt: 0, durationMs: 0 } as const
      if (isObserved())
        observers.publish('failed', { message: undefined, delivery, ...failure, runs: [], isStored: true })
    },

    /** No handler saw a request, or a message of it. */
    refused(error: HooklineError, request: FailedRequest, line: Partial<Line> | null): void {
      report(error, request, line)
      if (rejected.hasSubscribers) rejected.publish({ error, request } satisfies RejectedEvent)
    },

    /** @param since When the request arrived, on the monotonic clock. */
    answered<Answer extends Answered>(
      request: FailedRequest,
      { delivery, message }: { readonly delivery: Delivery; readonly message: ReceivedMessage | undefined },
      answer: Answer,
      since: number,
    ): Answer {
      if (!isObserved()) return answer
      const { headers, path, remoteAddress, method } = request as FailedRequest & Partial<EndpointRequest>
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

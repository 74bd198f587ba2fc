/** The one place where a receiver tells what happens to a delivery: to its log and `onError`, to diagnostics channels, to observers. */

import { channel } from 'node:diagnostics_channel'
import type { EndpointRequest } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import type { ReceivedMessage } from '../message/message.ts'
import type { Line } from '../options/log.ts'
import type { Report } from '../options/report.ts'
import type { Clock } from '../time/clock.ts'
import type { BatchResult, ReceivedElement } from './delivery.ts'
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
import { describe } from './log-lines.ts'
import type { OpenDelivery } from './open-delivery.ts'

const received = channel('hookline:received')
const unplanned = channel('hookline:unplanned')
const rejected = channel('hookline:rejected')
const stored = channel('hookline:stored')
const handled = channel('hookline:handled')
const ignored = channel('hookline:ignored')
const failed = channel('hookline:failed')

export type Tap = ReturnType<typeof createTap>

type Failure = Pick<FailedEvent, 'error' | 'next' | 'attempt' | 'handlers'>

export function createTap(report: Report<FailedRequest>, clock: Clock) {
  function observeFailed(event: FailedEvent, { observed }: OpenDelivery): void {
    if (observed === undefined) return
    const { observers, runs, isStored } = observed
    observers.publish('failed', { ...event, runs, isStored })
  }

  const tap = {
    /** When storing or handling starts; undefined while nothing needs its duration. */
    startOf(step: 'stored' | 'handled', delivery: OpenDelivery | undefined): number | undefined {
      const isHeard = step === 'stored' ? stored.hasSubscribers : handled.hasSubscribers || failed.hasSubscribers
      return isHeard || delivery?.observed !== undefined ? clock.monotonic() : undefined
    },

    received(message: ReceivedMessage, delivery: OpenDelivery): void {
      if (received.hasSubscribers) received.publish({ message, delivery } satisfies ReceivedEvent)
    },

    unplanned(event: UnplannedEvent): void {
      if (unplanned.hasSubscribers) unplanned.publish(event)
    },

    /** @param message Undefined for an authentic one that is invalid: channels leave it out. */
    stored(message: ReceivedMessage | undefined, delivery: OpenDelivery, startedAt: number): void {
      const durationMs = clock.monotonic() - startedAt
      if (message !== undefined) stored.publish({ message, delivery, durationMs } satisfies StoredEvent)
      delivery.observed?.observers.publish('stored', { message, delivery, durationMs })
    },

    /** Every handler succeeded, or none matched. Tells nothing of handlers that started before anything needed it. */
    handled(delivery: OpenDelivery, attempt = 1): void {
      const { dispatched, startedAt, observed, isIgnored } = delivery
      if (isIgnored) tap.ignored(delivery)
      if (isIgnored || startedAt === undefined) return
      const message = dispatched as ReceivedMessage
      const event: HandledEvent = { message, delivery, attempt, durationMs: clock.monotonic() - startedAt }
      if (handled.hasSubscribers) handled.publish(event)
      if (observed === undefined) return
      const { observers, runs, isStored } = observed
      observers.publish('handled', { ...event, runs, isStored })
    },

    ignored(delivery: OpenDelivery): void {
      const { dispatched, observed } = delivery
      const event: IgnoredEvent = { message: dispatched as ReceivedMessage, delivery }
      if (ignored.hasSubscribers) ignored.publish(event)
      observed?.observers.publish('ignored', { ...event, isStored: observed.isStored })
    },

    /** A request failed, or a message of it: it is rejected unless handlers saw it. */
    refused(delivery: OpenDelivery, error: HooklineError, request: FailedRequest, line: Partial<Line> | null): void {
      report(error, request, line)
      if (delivery.dispatched !== undefined) tap.failed(delivery, { error, next: 'sender', attempt: 1 })
      else if (rejected.hasSubscribers) rejected.publish({ error, request } satisfies RejectedEvent)
    },

    /** Handlers of a message failed. Without a line, the log has it already. */
    failed(delivery: OpenDelivery, failure: Failure, line?: Partial<Line>): void {
      if (line !== undefined) report(failure.error, requestOf(delivery), line)
      const { dispatched: message, startedAt } = delivery
      const now = clock.monotonic()
      const event: FailedEvent = { message, delivery, durationMs: now - (startedAt ?? now), ...failure }
      if (failed.hasSubscribers) failed.publish(event)
      observeFailed(event, delivery)
    },

    /** Something failed after the answer, or beside it. */
    failedLate(delivery: OpenDelivery, error: HooklineError, request = requestOf(delivery)): void {
      report(error, request, describe(error, delivery))
    },

    /** The queue made a dead letter by itself: channels leave it out. */
    unreadable(delivery: OpenDelivery, error: HooklineError, line: Partial<Line>): void {
      report(error, requestOf(delivery), line)
      const event = { message: undefined, delivery, attempt: 0, durationMs: 0, error, next: 'dead_letter' } as const
      observeFailed(event, delivery)
    },

    answered(
      delivery: OpenDelivery,
      request: FailedRequest,
      { status, error, elements }: BatchResult & { readonly status: number },
      since: number,
    ): void {
      const { observed, dispatched, wire } = delivery
      if (observed === undefined) return
      const { headers, path, remoteAddress, method } = request as FailedRequest & Partial<EndpointRequest>
      observed.observers.publish('answered', {
        request: { headers, path, remoteAddress, method }, // That of a host holds its connection.
        delivery,
        message: dispatched ?? wire,
        status,
        error,
        durationMs: clock.monotonic() - since,
        elements: elements ?? NO_ELEMENTS,
      })
    },
  }
  return tap
}

const NO_ELEMENTS: readonly ReceivedElement[] = []

function requestOf({ headers }: OpenDelivery): FailedRequest {
  return { headers, path: undefined, remoteAddress: undefined }
}

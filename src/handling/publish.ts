/** Publishes what happens to a delivery: on diagnostics channels that have subscribers, and to the observers of the delivery. */

import { channel } from 'node:diagnostics_channel'
import type { EndpointRequest } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import type { Clock } from '../time/clock.ts'
import type { BatchResult, ReceivedElement } from './delivery.ts'
import type {
  FailedEvent,
  FailedRequest,
  HandledEvent,
  ReceivedEvent,
  RejectedEvent,
  StoredEvent,
} from './diagnostics.ts'
import type { Observed, OpenDelivery } from './open-delivery.ts'

const received = channel('hookline:received')
const rejected = channel('hookline:rejected')
const stored = channel('hookline:stored')
const handled = channel('hookline:handled')
const failed = channel('hookline:failed')

export function publishReceived(message: Message, delivery: OpenDelivery): void {
  if (received.hasSubscribers) received.publish({ message, delivery } satisfies ReceivedEvent)
}

export function publishRejected(error: HooklineError, request: FailedRequest): void {
  if (rejected.hasSubscribers) rejected.publish({ error, request } satisfies RejectedEvent)
}

/** When a step starts whose duration is published; undefined while nothing takes that. */
export function startOf(step: 'stored' | 'handled', clock: Clock, observed: Observed | undefined): number | undefined {
  const isHeard = step === 'stored' ? stored.hasSubscribers : handled.hasSubscribers || failed.hasSubscribers
  return isHeard || observed !== undefined ? clock.monotonic() : undefined
}

/** @param message Undefined for an authentic one that is invalid: channels leave it out. */
export function publishStored(
  message: Message | undefined,
  delivery: OpenDelivery,
  jobId: string,
  startedAt: number,
  clock: Clock,
): void {
  const durationMs = clock.monotonic() - startedAt
  if (message !== undefined) stored.publish({ message, delivery, durationMs } satisfies StoredEvent)
  delivery.observed?.observers.publish('stored', { message, delivery, durationMs, jobId })
}

/** Publishes nothing when the handlers started before anything took it. */
export function publishHandled(delivery: OpenDelivery, attempt: number, clock: Clock): void {
  const { dispatched, startedAt } = delivery
  if (startedAt === undefined) return
  const durationMs = clock.monotonic() - startedAt
  const message = dispatched as Message
  if (handled.hasSubscribers) {
    handled.publish({ message, delivery, attempt, durationMs } satisfies HandledEvent)
  }
  const { observed } = delivery
  if (observed === undefined) return
  const { observers, runs, jobId } = observed
  observers.publish('handled', { message, delivery, attempt, durationMs, runs, jobId })
}

export function publishFailed(
  delivery: OpenDelivery,
  attempt: number,
  clock: Clock,
  { error, next }: Pick<FailedEvent, 'error' | 'next'>,
): void {
  const { dispatched: message, startedAt } = delivery
  const now = clock.monotonic()
  const event: FailedEvent = { message, delivery, attempt, durationMs: now - (startedAt ?? now), error, next }
  if (failed.hasSubscribers) failed.publish(event)
  publishFailure(event, delivery)
}

/** Publishes a dead letter that the queue made by itself, to observers alone. */
export function publishUnreadable(delivery: OpenDelivery, error: HooklineError): void {
  publishFailure({ message: undefined, delivery, attempt: 0, durationMs: 0, error, next: 'dead_letter' }, delivery)
}

function publishFailure(event: FailedEvent, { observed }: OpenDelivery): void {
  if (observed === undefined) return
  const { observers, runs, jobId } = observed
  observers.publish('failed', { ...event, runs, jobId })
}

const NO_ELEMENTS: readonly ReceivedElement[] = []

/** Publishes to observers how a request was answered. */
export function publishAnswered(
  delivery: OpenDelivery,
  request: FailedRequest,
  result: BatchResult & { readonly status: number },
  since: number,
): void {
  const { observed, dispatched, wire } = delivery
  if (observed === undefined) return
  const { headers, path, remoteAddress, method, originalPath } = request as FailedRequest & Partial<EndpointRequest>
  const { status, error, elements } = result
  observed.observers.publish('answered', {
    request: { headers, path, remoteAddress, method, originalPath }, // That of a host holds its connection.
    delivery,
    message: dispatched ?? wire,
    status,
    error,
    durationMs: observed.observers.clock.monotonic() - since,
    elements: elements ?? NO_ELEMENTS,
  })
}

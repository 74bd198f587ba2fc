/** Publishes what happens to a delivery: on diagnostics channels that have subscribers, and to the observers of the delivery. */

import { channel } from 'node:diagnostics_channel'
import type { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import type { Clock } from '../time/clock.ts'
import type { BatchResult } from './delivery.ts'
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
  const { dispatched, startedAt, observed } = delivery
  if (startedAt === undefined) return
  const message = dispatched as Message
  const durationMs = clock.monotonic() - startedAt
  if (handled.hasSubscribers) handled.publish({ message, delivery, attempt, durationMs } satisfies HandledEvent)
  if (observed === undefined) return
  const { runs, jobId } = observed
  observed.observers.publish('handled', { message, delivery, attempt, durationMs, runs, jobId })
}

export function publishFailed(
  delivery: OpenDelivery,
  attempt: number,
  clock: Clock,
  { error, next }: Pick<FailedEvent, 'error' | 'next'>,
): void {
  const { dispatched: message, startedAt, observed } = delivery
  if (!failed.hasSubscribers && observed === undefined) return
  const now = clock.monotonic()
  const durationMs = now - (startedAt ?? now)
  if (failed.hasSubscribers) {
    failed.publish({ message, delivery, attempt, durationMs, error, next } satisfies FailedEvent)
  }
  if (observed === undefined) return
  const { runs, jobId } = observed
  observed.observers.publish('failed', { message, delivery, attempt, durationMs, error, next, runs, jobId })
}

/** Publishes a dead letter that the queue made by itself, to observers alone. */
export function publishUnreadable(delivery: OpenDelivery, error: HooklineError): void {
  const { observed } = delivery
  if (observed === undefined) return
  const { observers, runs, jobId } = observed
  const none = { message: undefined, attempt: 0, durationMs: 0 }
  observers.publish('failed', { ...none, delivery, error, next: 'dead_letter', runs, jobId })
}

/** Publishes to observers how a request was answered. */
export function publishAnswered(
  delivery: OpenDelivery,
  request: FailedRequest,
  { status, error, elements }: BatchResult & { readonly status: number },
  since: number,
): void {
  const { observed, dispatched, wire } = delivery
  observed?.observers.publish('answered', {
    request,
    delivery,
    message: dispatched ?? wire,
    status,
    error,
    durationMs: observed.clock.monotonic() - since,
    elements: elements?.map((element) => element.delivery) ?? [],
  })
}

/** What a receiver publishes on diagnostics channels: its events, and each of them only while a channel has subscribers. */

import { channel } from 'node:diagnostics_channel'
import type { EndpointHeaders } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import type { Clock } from '../time/clock.ts'
import type { Delivery, OpenDelivery } from './delivery.ts'

/** The request that an error is about. Holds no body, because the body may not be authentic. */
export interface FailedRequest {
  /** The headers of the request, names in lower case. */
  readonly headers: EndpointHeaders
  /** The path that the endpoint saw; undefined for a message from an inbox. */
  readonly path: string | undefined
  /** The address of the connection, where the host knows it. */
  readonly remoteAddress: string | undefined
}

/** `hookline:received`: a message is valid, and goes to its handlers or into the inbox next. It is authentic if `delivery.verified`. */
export interface ReceivedEvent {
  readonly message: Message
  readonly delivery: Delivery
}

/** `hookline:rejected`: a request, or an element of its batch, was refused or could not be processed; no handler saw it. */
export interface RejectedEvent {
  readonly error: HooklineError
  readonly request: FailedRequest
}

/** `hookline:stored`: a message is in the inbox, as safe as its queue stores it, or was there already. */
export interface StoredEvent {
  readonly message: Message
  readonly delivery: Delivery
  /** How long storing took, in milliseconds. */
  readonly durationMs: number
}

/** `hookline:handled`: every handler of a message succeeded. */
export interface HandledEvent {
  readonly message: Message
  readonly delivery: Delivery
  /** Which attempt this was, from 1 on; without an inbox always 1. */
  readonly attempt: number
  /** How long the handlers took, in milliseconds. */
  readonly durationMs: number
}

/** `hookline:failed`: handlers of a message failed, or took too long. */
export interface FailedEvent extends Omit<HandledEvent, 'message' | 'attempt'> {
  /** Undefined when no handler saw the message: it is invalid for this receiver, or its claims were lost too often. */
  readonly message: Message | undefined
  /**
   * Which attempt this was, from 1 on; without an inbox always 1. For a message that is unreadable or
   * whose claims were lost too often: how many attempts there were, 0 for none.
   */
  readonly attempt: number
  readonly error: HooklineError
  /** What comes next: a retry or a dead letter of the inbox; without an inbox, the sender sends the message again. */
  readonly next: { readonly retryAt: Date } | 'dead_letter' | 'sender'
}

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

/** When a step starts whose duration is published; undefined while its channels have no subscribers. */
export function startOf(step: 'stored' | 'handled', clock: Clock): number | undefined {
  const isHeard = step === 'stored' ? stored.hasSubscribers : handled.hasSubscribers || failed.hasSubscribers
  return isHeard ? clock.monotonic() : undefined
}

export function publishStored(message: Message, delivery: OpenDelivery, startedAt: number, clock: Clock): void {
  const durationMs = clock.monotonic() - startedAt
  stored.publish({ message, delivery, durationMs } satisfies StoredEvent)
}

/** Publishes nothing when the handlers started before the channel had subscribers. */
export function publishHandled(delivery: OpenDelivery, attempt: number, clock: Clock): void {
  const { dispatched: message, startedAt } = delivery
  if (startedAt === undefined || !handled.hasSubscribers) return
  handled.publish({ message, delivery, attempt, durationMs: clock.monotonic() - startedAt })
}

export function publishFailed(
  delivery: OpenDelivery,
  attempt: number,
  clock: Clock,
  { error, next }: Pick<FailedEvent, 'error' | 'next'>,
): void {
  if (!failed.hasSubscribers) return
  const now = clock.monotonic()
  const durationMs = now - (delivery.startedAt ?? now)
  failed.publish({ message: delivery.dispatched, delivery, attempt, durationMs, error, next } satisfies FailedEvent)
}

/** Tells of messages on the diagnostics channels: of each only when somebody listens. */

import type { Clock } from '../protocol/clock.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import type { OpenDelivery } from './delivery.ts'
import { channels, type FailedEvent, type ReceivedEvent, type RejectedEvent, type StoredEvent } from './events.ts'
import type { FailedRequest } from './options.ts'

const { received, rejected, stored, handled, failed } = channels

/** A message is authentic and valid. */
export function announceReceived(message: Message, delivery: OpenDelivery): void {
  if (received.hasSubscribers) received.publish({ message, delivery } satisfies ReceivedEvent)
}

/** A request was refused, or could not be taken. */
export function announceRejected(error: HooklineError, request: FailedRequest): void {
  if (rejected.hasSubscribers) rejected.publish({ error, request } satisfies RejectedEvent)
}

/** When a step begins whose end is told; undefined when nobody listens. */
export function startOf(step: 'stored' | 'handled', clock: Clock): number | undefined {
  const isHeard = step === 'stored' ? stored.hasSubscribers : handled.hasSubscribers || failed.hasSubscribers
  return isHeard ? clock.monotonic() : undefined
}

/** A message is in the inbox. */
export function announceStored(message: Message, delivery: OpenDelivery, startedAt: number, clock: Clock): void {
  const durationMs = clock.monotonic() - startedAt
  stored.publish({ message, delivery, durationMs } satisfies StoredEvent)
}

/** Its handlers are done with a message that they were handed. */
export function announceHandled(delivery: OpenDelivery, attempt: number, clock: Clock): void {
  const { handed: message, startedAt } = delivery
  if (startedAt === undefined || !handled.hasSubscribers) return
  handled.publish({ message, delivery, attempt, durationMs: clock.monotonic() - startedAt })
}

/** An attempt failed: that of handlers, or to read what they were to get. */
export function announceFailed(
  delivery: OpenDelivery,
  attempt: number,
  clock: Clock,
  { error, next }: Pick<FailedEvent, 'error' | 'next'>,
): void {
  if (!failed.hasSubscribers) return
  const now = clock.monotonic()
  const durationMs = now - (delivery.startedAt ?? now)
  failed.publish({ message: delivery.handed, delivery, attempt, durationMs, error, next } satisfies FailedEvent)
}

/** What an observer of one destination sees. */

import type { Message } from '../message/message.ts'
import type { DeliveryReport, SkipReason } from './api.ts'
import type { CircuitEvent } from './circuit.ts'

/** A message was queued. */
export interface QueuedEvent {
  readonly id: string
  readonly message: Message
  /** What is signed and posted. */
  readonly bytes: Uint8Array
  /** In milliseconds since the epoch, by the clock of the destination. */
  readonly at: number
}

/** A round ended, or the message failed without one. */
export interface ObservedReport extends DeliveryReport {
  /** What is signed and posted. */
  readonly bytes: Uint8Array
}

/** Observes one destination. Each method is called at once: keep it short. What it throws becomes a process warning. */
export interface DestinationObserver {
  queued?(event: QueuedEvent): void
  skipped?(event: { readonly message: Message; readonly reason: SkipReason }): void
  /** The report is the one of `onAttempt`: a getter parses its message, a copy by spread loses it. */
  attempted?(report: ObservedReport): void
  circuit?(event: CircuitEvent): void
  /** `forget` was called: an observer forgets the messages of these users, too. */
  forgotten?(event: { readonly ids: string | readonly string[] }): void
}

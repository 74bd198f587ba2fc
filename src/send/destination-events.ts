/** The events that a destination passes to its callbacks, its observers and the diagnostics channels. */

import type { TracedEvent } from '../kit/trace.ts'
import type { Message } from '../protocol/message.ts'
import type { CircuitEvent } from './circuit.ts'
import type { Attempt } from './sender-types.ts'

/** Why a message was skipped: it was not queued or, if a `filter` left it out, not sent. */
export type SkipReason =
  /** The destination is disabled, and `whenDisabled` is `drop`. */
  | 'switched_off'
  /** The integrations of the message exclude `Webhooks`. */
  | 'not_selected'
  /** The message is older than `historicalAfterMs`. */
  | 'historical'
  /** A `filter` left the message out. */
  | 'filtered'

/** The event of `hookline:skipped`: a destination did not queue or did not send a message. */
export interface SkippedEvent {
  readonly message: Message
  readonly reason: SkipReason
  /** When the message was given to the destination, in milliseconds since the epoch, on the destination's clock. */
  readonly at: number
  /** The id of the message; set only if the message was queued before a `filter` left it out. */
  readonly id?: string
}

/** Why a message is no longer retried. */
export type FailureReason =
  /** Every URL gave a final response, such as a 400, or failed with a final error, such as `self_signed`. */
  | 'refused'
  /** The four hours in which a message is retried are over. */
  | 'window_over'
  /** The destination was disabled when the four hours ended. */
  | 'switched_off'
  /** The circuits of the message's URLs were open when the four hours ended. */
  | 'circuit_open'
  /** A `filter` or `transform` threw. The dead letter has the message as it was submitted. */
  | 'transform_failed'
  /** The job in the queue was lost or changed, so the message cannot be sent. */
  | 'unreadable'

/** The state of a message after a round. */
export interface DeliveryReport {
  readonly status: 'delivered' | 'retrying' | 'failed'
  readonly id: string
  /**
   * The message. A getter parses it, so neither a copy of the report made by spreading nor the JSON of the report contains the message.
   * Reading it throws a HooklineError when `reason` is `unreadable`.
   */
  readonly message: Message
  /** The attempts of this round; empty when the message failed without another round. */
  readonly latest: readonly Attempt[]
  /** All attempts since the message was queued, in order. The attempts of earlier rounds have an empty body and no `reason`. */
  readonly attempts: readonly Attempt[]
  /** When the next round begins; set if `status` is `retrying`. */
  readonly retryAt?: Date
  /** Why the message failed; set if `status` is `failed`. */
  readonly reason?: FailureReason
  /** The value that `filter` or `transform` threw; set if `reason` is `transform_failed`. */
  readonly error?: unknown
}

/**
 * The event of the tracing channel `hookline:deliver`: one POST to a URL, by a destination or a sender. The channel never publishes
 * `error`: `result` contains the error of a failed attempt.
 */
export interface DeliverEvent extends TracedEvent {
  /** The webhook URL. Its query is shown as `?…`. */
  readonly url: string
  /** The id that the destination gave the message; undefined for a message of a sender. */
  readonly id: string | undefined
  /** The number of this attempt at the URL, counted from 1; always 1 for a sender. */
  readonly attempt: number
  /** The completed attempt; set before `asyncEnd` is published. */
  readonly result?: Attempt
}

/** The event of a message that was queued. If it was pushed with a `db`, it is queued only if your transaction commits. */
export interface QueuedEvent {
  readonly id: string
  readonly message: Message
  /** The message as it was given, before `filter` and `transform`. */
  readonly bytes: Uint8Array
  /** When the message was given to the destination, in milliseconds since the epoch, on the destination's clock. */
  readonly at: number
}

/** The report on a round that ended, or on a message that failed without another round. */
export interface ObservedReport extends DeliveryReport {
  /** The bytes that are signed and posted or, if `filter` or `transform` failed, those of the message as it was submitted. */
  readonly bytes: Uint8Array
}

/**
 * Observes one destination. Each method is called synchronously, so keep it short. An error that a method throws becomes a process warning.
 */
export interface DestinationObserver {
  queued?(event: QueuedEvent): void
  skipped?(event: SkippedEvent): void
  /** Receives the same report as `onAttempt`. `message` and `bytes` are getters: a copy of the report made by spreading lacks them. */
  attempted?(report: ObservedReport): void
  circuit?(event: CircuitEvent): void
  /** Tells the observer that `forget` was called. The observer must also forget the messages of the user with these ids. */
  forgotten?(event: { readonly ids: string | readonly string[] }): void
}

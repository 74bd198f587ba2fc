/** What an observer of one receiver sees: more than the diagnostics of the process, which hold no body of a refused request. */

import type { HooklineError } from '../message/error.ts'
import type { ReceivedMessage } from '../message/message.ts'
import { createObservers, type Observers } from '../options/observers.ts'
import type { Clock } from '../time/clock.ts'
import type { Delivery, ReceivedElement } from './delivery.ts'
import type { FailedEvent, FailedRequest, HandledEvent, IgnoredEvent, StoredEvent } from './diagnostics.ts'

/** How one handler ended. */
export interface HandlerRun {
  /** What it was registered for: `track`, `track Order Completed`, `*`, `entered high_value_users`. */
  readonly on: string
  /** The name that it was registered with, else that of the function; empty without both. */
  readonly name: string
  /** In milliseconds. */
  readonly durationMs: number
  /** What it threw. Undefined when it succeeded. */
  readonly error?: unknown
}

/** A request, without its body. */
export interface AnsweredRequest extends FailedRequest {
  /** In upper case; undefined for one that was passed to `receive`. */
  readonly method: string | undefined
}

/** A request was answered. Its body may not be authentic: see {@link Delivery.verified}. */
export interface AnsweredEvent {
  readonly request: AnsweredRequest
  /** Its `bytes` are those of a refused request, too; empty when no body was read. */
  readonly delivery: Delivery
  /** The message; undefined when it was refused before it was parsed. Of a batch: undefined, see `elements`. */
  readonly message: ReceivedMessage | undefined
  readonly status: number
  /** Why it was refused or failed; set with status 200 for an invalid message that the inbox stored. */
  readonly error: HooklineError | undefined
  /** From the arrival of the request to its answer, in milliseconds. */
  readonly durationMs: number
  /** The result of each element of a batch, in their order. Empty for a message that arrived alone. */
  readonly elements: readonly ReceivedElement[]
}

/** A message is stored in the inbox, or an authentic one that is invalid. */
export interface ObservedStored extends Omit<StoredEvent, 'message'> {
  readonly message: ReceivedMessage | undefined
}

/** No handler matches a message. */
export interface ObservedIgnored extends IgnoredEvent {
  /** Whether it is in the inbox. */
  readonly isStored: boolean
}

/** Every handler of a message succeeded. */
export interface ObservedHandled extends HandledEvent {
  /** One for each handler that ran, in the order of their ends. */
  readonly runs: readonly HandlerRun[]
  /** Whether it is in the inbox. */
  readonly isStored: boolean
}

/** Handlers of a message failed, or took too long. */
export interface ObservedFailed extends FailedEvent {
  /** Those that have ended. */
  readonly runs: readonly HandlerRun[]
  readonly isStored: boolean
}

/** `forget` was called: an observer forgets the messages of these users, too. */
export interface ForgottenEvent {
  /** As they were passed to `forget`. */
  readonly ids: string | readonly string[]
  /** Undefined: of all sources. */
  readonly source: string | undefined
}

/**
 * Observes one receiver. Each method is called at once, mostly before the answer goes out: keep it short. What it throws
 * becomes a process warning.
 */
export interface ReceiverObserver {
  answered?(event: AnsweredEvent): void
  stored?(event: ObservedStored): void
  handled?(event: ObservedHandled): void
  ignored?(event: ObservedIgnored): void
  failed?(event: ObservedFailed): void
  forgotten?(event: ForgottenEvent): void
}

export type ReceiverObservers = Observers<ReceiverObserver>

export function createReceiverObservers(clock: Clock): ReceiverObservers {
  return createObservers(clock, ['answered', 'stored', 'handled', 'ignored', 'failed', 'forgotten'])
}

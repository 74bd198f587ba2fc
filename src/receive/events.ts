/** The events of a receiver. Observers and the diagnostics channels get the same events. */

import type { EndpointHeaders } from '../host/endpoint.ts'
import type { TracedEvent } from '../kit/trace.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage, TrackMessage } from '../protocol/message.ts'
import type { Delivery, HandlerNames, ReceivedElement } from './delivery.ts'
import type { DeadLetterMessage } from './stored-message.ts'

/** The request that an error is about. Holds no body, because the body may not be authentic. */
export interface FailedRequest {
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
  /** The path that the endpoint saw; undefined for a message from an inbox. */
  readonly path: string | undefined
  /** The address of the connection, if the host knows it. */
  readonly remoteAddress: string | undefined
}

/** A request, without its body. */
export interface AnsweredRequest extends FailedRequest {
  /** The method in upper case; undefined for a request that was passed to `receive`. */
  readonly method: string | undefined
}

/** A message is valid, and goes to its handlers or into the inbox next. The message is authentic unless `delivery.verified` is false. */
export interface ReceivedEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
}

/** A request, or an element of a batch, was refused or could not be processed, so no handler was called for it. */
export interface RefusedEvent {
  readonly error: HooklineError
  readonly request: FailedRequest
}

/** An authentic message is valid, but its event has no schema in `events`. Published only for receivers with that option. */
export interface UnplannedEvent {
  readonly message: TrackMessage
  readonly delivery: Delivery
  /** The number of messages of the same event since the receiver was created. */
  readonly count: number
}

/** A message was stored in the inbox, as durably as its queue allows, or was already there. */
export interface StoredEvent {
  /** The message; undefined for an authentic message that is invalid, which becomes a dead letter. */
  readonly message: ReceivedMessage | undefined
  readonly delivery: Delivery
  /** How long storing took, in milliseconds. */
  readonly durationMs: number
}

/** No handler matches a message. The message is answered 200 and, in an inbox, completed. */
export interface IgnoredEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
}

/**
 * The event of the tracing channel `hookline:handle`, which traces the handlers of a message. The trace ends with `hookline:handled`,
 * `hookline:failed`, or a release by `close`.
 */
export interface HandleEvent extends TracedEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** The number of this attempt, counted from 1; always 1 without an inbox. */
  readonly attempt: number
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
  /** Why the attempt failed; set before `error` is published. */
  readonly error?: HooklineError
}

/** How one handler ended. */
export interface HandlerRun {
  /** The messages that the handler was registered for: `track`, `track Order Completed`, `*`, `entered high_value_users`. */
  readonly on: string
  /** The name that the handler was registered with, or else the name of the function; empty if it has neither. */
  readonly name: string
  /** How long the handler took, in milliseconds. */
  readonly durationMs: number
  /** The value that the handler threw; undefined when the handler succeeded. */
  readonly error?: unknown
}

/** Every handler of a message succeeded. */
export interface HandledEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** The number of this attempt, counted from 1; always 1 without an inbox. */
  readonly attempt: number
  /** How long the handlers took, in milliseconds. */
  readonly durationMs: number
  /** The result of each handler that ran, in the order in which the handlers finished. */
  readonly runs: readonly HandlerRun[]
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
}

/** Handlers of a message failed, or took too long. */
export interface FailedEvent extends Omit<HandledEvent, 'message'> {
  /** The message; undefined when no handler saw it, because it is invalid for this receiver or its claims were lost too often. */
  readonly message: ReceivedMessage | undefined
  /**
   * The number of this attempt, counted from 1; always 1 without an inbox. For a message that is unreadable or whose claims were lost too
   * often, the number of attempts so far, which may be 0.
   */
  readonly attempt: number
  readonly error: HooklineError
  /** The next step: a retry by the inbox, a dead letter, or, without an inbox, another delivery by the sender. */
  readonly next: { readonly retryAt: Date } | 'dead_letter' | 'sender'
  /** The handlers that are done, and those that failed; undefined without named handlers, and without an inbox. */
  readonly handlers?: HandlerNames | undefined
}

/** A request was answered. Its body may not be authentic: see {@link Delivery.verified}. */
export interface AnsweredEvent {
  readonly request: AnsweredRequest
  /** The delivery of the request, even of a refused one. Its `bytes` are empty when no body was read. */
  readonly delivery: Delivery
  /**
   * The message; undefined for a batch, whose messages are in `elements`, and for a request that was refused before its message was parsed.
   */
  readonly message: ReceivedMessage | undefined
  readonly status: number
  /** Why the request was refused or failed. Also set, with the status 200, for an invalid message that the inbox stored. */
  readonly error: HooklineError | undefined
  /** The time from the arrival of the request to its answer, in milliseconds. */
  readonly durationMs: number
  /** The result of each element of a batch, in order. Empty for a message that arrived alone. */
  readonly elements: readonly ReceivedElement[]
}

/** `forget` was called, or a message was dropped because of `suppressForMs`. Observers should forget the messages of these users, too. */
export interface ForgottenEvent {
  /** The ids as they were passed to `forget`, or the ids of users in the message that was dropped. */
  readonly ids: string | readonly string[]
  /** The source whose messages to forget; undefined for all sources. */
  readonly source: string | undefined
}

/**
 * Observes one receiver. Each method is called synchronously, usually before the answer is sent, so keep it fast. If a method throws, the
 * process emits a warning.
 */
export interface ReceiverObserver {
  received?(event: ReceivedEvent): void
  refused?(event: RefusedEvent): void
  unplanned?(event: UnplannedEvent): void
  stored?(event: StoredEvent): void
  handled?(event: HandledEvent): void
  ignored?(event: IgnoredEvent): void
  failed?(event: FailedEvent): void
  /** A message became a dead letter. Called after `failed`, or alone when the queue could not read the message. */
  dead?(letter: DeadLetterMessage): void
  answered?(event: AnsweredEvent): void
  forgotten?(event: ForgottenEvent): void
}

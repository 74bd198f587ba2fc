/**
 * The events of a receiver. Observers get all of them except `HandleEvent`, which only a tracing channel publishes.
 * Diagnostics channels publish all of them except `answered` and `forgotten`.
 */

import type { EndpointHeaders } from '../host/endpoint.ts'
import type { TracedEvent } from '../kit/trace.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage, TrackMessage } from '../protocol/message.ts'
import type { Delivery, HandlerNames, ReceivedElement } from './delivery.ts'
import type { DeadLetterMessage } from './stored-message.ts'

/** The request that an error is about. It holds no body, because the body may not be authentic. */
export interface FailedRequest {
  /** The headers of the request, with names in lower case. */
  readonly headers: EndpointHeaders
  /**
   * The path of the request, relative to where the endpoint is mounted; undefined for a message from an inbox, and if `receive` was called
   * without a path.
   */
  readonly path: string | undefined
  /** The remote IP address of the connection; undefined if the framework or the server does not provide it. */
  readonly remoteAddress: string | undefined
}

/** A request that was answered, without its body. */
export interface AnsweredRequest extends FailedRequest {
  /** The method in upper case; undefined for a request that was passed to `receive`. */
  readonly method: string | undefined
}

/**
 * Reports a valid message before it goes to its handlers or into the inbox. The message is authentic unless `delivery.verified` is false.
 */
export interface ReceivedEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
}

/** Reports that a request, or an element of a batch, was refused or could not be processed, so that no handler was called for it. */
export interface RefusedEvent {
  readonly error: HooklineError
  readonly request: FailedRequest
}

/** Reports an authentic, valid message whose event has no schema in `events`. Only receivers with that option publish it. */
export interface UnplannedEvent {
  readonly message: TrackMessage
  readonly delivery: Delivery
  /** The number of messages of the same event since the receiver was created. */
  readonly count: number
}

/** Reports that a message was stored in the inbox, as durably as the queue allows, or was already in the inbox. */
export interface StoredEvent {
  /** The message; undefined for an authentic message that is invalid, which becomes a dead letter. */
  readonly message: ReceivedMessage | undefined
  readonly delivery: Delivery
  /** How long it took to store the message, in milliseconds. */
  readonly durationMs: number
}

/** Reports a message that no handler matches. The sender of such a message gets the answer 200. An inbox completes the message. */
export interface IgnoredEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
}

/**
 * The event of the tracing channel `hookline:handle`, which traces an attempt to handle a message. The trace ends when `handled` or
 * `failed` is published for the attempt, or when `close` or `work` releases the message.
 */
export interface HandleEvent extends TracedEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** The number of this attempt, counted from 1; always 1 without an inbox. */
  readonly attempt: number
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
  /** Why the attempt failed; undefined until the tracing channel publishes `error`. */
  readonly error?: HooklineError
}

/** The result of one handler in an attempt. */
export interface HandlerRun {
  /** The messages for which the handler was registered, such as `track`, `track Order Completed`, `*` or `entered high_value_users`. */
  readonly on: string
  /** The name with which the handler was registered or, without one, the name of the function; empty if both are missing. */
  readonly name: string
  /** How long the handler took, in milliseconds. */
  readonly durationMs: number
  /** The value that the handler threw; undefined when the handler succeeded. */
  readonly error?: unknown
}

/** Reports that every handler of a message succeeded. */
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

/** Reports that handlers of a message failed or took too long, or that a message of the inbox never reached its handlers. */
export interface FailedEvent extends Omit<HandledEvent, 'message'> {
  /**
   * The message; undefined if it did not reach a handler, because it is invalid or unreadable, or because its claims were lost too often.
   */
  readonly message: ReceivedMessage | undefined
  /**
   * The number of this attempt, counted from 1; always 1 without an inbox. If the message is unreadable or its claims
   * were lost too often, this is the number of attempts so far, which may be 0.
   */
  readonly attempt: number
  readonly error: HooklineError
  /** The next step: a retry by the inbox, a dead letter, or, without an inbox, another delivery by the sender. */
  readonly next: { readonly retryAt: Date } | 'dead_letter' | 'sender'
  /** The names of the handlers that are done, and of those that failed; undefined without named handlers, and without an inbox. */
  readonly handlers?: HandlerNames | undefined
}

/** Reports that a request was answered. The body of the request may not be authentic: see {@link Delivery.verified}. */
export interface AnsweredEvent {
  readonly request: AnsweredRequest
  /** The delivery of the request, even if the request was refused. Its `bytes` are empty if no body was read. */
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

/**
 * Reports that `forget` was called, or that a message was dropped because of `suppressForMs`. Observers should also delete the messages of
 * these users.
 */
export interface ForgottenEvent {
  /** The ids as they were passed to `forget`, or the ids of users in the message that was dropped. */
  readonly ids: string | readonly string[]
  /** The source whose messages must be deleted; undefined for all sources. */
  readonly source: string | undefined
}

/**
 * Observes one receiver. The methods are called synchronously, usually before the answer is sent, so they must be fast. If a method throws
 * or rejects, the process emits a warning.
 */
export interface ReceiverObserver {
  received?(event: ReceivedEvent): void
  refused?(event: RefusedEvent): void
  unplanned?(event: UnplannedEvent): void
  stored?(event: StoredEvent): void
  handled?(event: HandledEvent): void
  ignored?(event: IgnoredEvent): void
  failed?(event: FailedEvent): void
  /** Receives a message that became a dead letter. Called after `failed`. */
  dead?(letter: DeadLetterMessage): void
  answered?(event: AnsweredEvent): void
  forgotten?(event: ForgottenEvent): void
}

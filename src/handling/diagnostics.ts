/** The events that a receiver publishes on diagnostics channels. Types only. */

import type { EndpointHeaders } from '../http/endpoint.ts'
import type { HooklineError } from '../message/error.ts'
import type { ReceivedMessage, TrackMessage } from '../message/message.ts'
import type { Delivery } from './delivery.ts'

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
  readonly message: ReceivedMessage
  readonly delivery: Delivery
}

/** `hookline:unplanned`: an authentic message is valid, and its event has no schema in `events`. Only for receivers with that option. */
export interface UnplannedEvent {
  readonly message: TrackMessage
  readonly delivery: Delivery
  /** How many of its event there have been since the receiver was created. */
  readonly count: number
}

/** `hookline:rejected`: a request, or an element of its batch, was refused or could not be processed; no handler saw it. */
export interface RejectedEvent {
  readonly error: HooklineError
  readonly request: FailedRequest
}

/** `hookline:stored`: a message is in the inbox, as safe as its queue stores it, or was there already. */
export interface StoredEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** How long storing took, in milliseconds. */
  readonly durationMs: number
}

/** `hookline:ignored`: no handler matches a message. It is answered 200, and complete in an inbox. */
export interface IgnoredEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
}

/** `hookline:handled`: every handler of a message succeeded. */
export interface HandledEvent {
  readonly message: ReceivedMessage
  readonly delivery: Delivery
  /** Which attempt this was, from 1 on; without an inbox always 1. */
  readonly attempt: number
  /** How long the handlers took, in milliseconds. */
  readonly durationMs: number
}

/** Which named handlers of a message in an inbox are done, and which failed in its last attempt. The empty name is that of all without one. */
export interface HandlerNames {
  readonly done: readonly string[]
  readonly failed: readonly string[]
}

/** `hookline:failed`: handlers of a message failed, or took too long. */
export interface FailedEvent extends Omit<HandledEvent, 'message' | 'attempt'> {
  /** Undefined when no handler saw the message: it is invalid for this receiver, or its claims were lost too often. */
  readonly message: ReceivedMessage | undefined
  /**
   * Which attempt this was, from 1 on; without an inbox always 1. For a message that is unreadable or
   * whose claims were lost too often: how many attempts there were, 0 for none.
   */
  readonly attempt: number
  readonly error: HooklineError
  /** What comes next: a retry or a dead letter of the inbox; without an inbox, the sender sends the message again. */
  readonly next: { readonly retryAt: Date } | 'dead_letter' | 'sender'
  /** Undefined without named handlers, and without an inbox. */
  readonly handlers?: HandlerNames | undefined
}

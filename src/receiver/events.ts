/** What a receiver tells on diagnostics channels, for every message and request: the channels and their events. */

import { channel } from 'node:diagnostics_channel'
import type { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import type { Delivery } from './delivery.ts'
import type { FailedRequest } from './options.ts'

/** `hookline:received`: a message is authentic and valid, and goes to its handlers or into the inbox now. */
export interface ReceivedEvent {
  readonly message: Message
  readonly delivery: Delivery
}

/** `hookline:rejected`: a request was refused, or could not be taken; no handler saw it. */
export interface RejectedEvent {
  readonly error: HooklineError
  readonly request: FailedRequest
}

/** `hookline:stored`: a message is in the inbox, as safe as its queue makes it; or was there already. */
export interface StoredEvent {
  readonly message: Message
  readonly delivery: Delivery
  /** How long that took, in milliseconds. */
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
  /** Undefined when no handler got it: what is in the inbox is not what this receiver takes, or processes died of it. */
  readonly message: Message | undefined
  /**
   * Which attempt this was, from 1 on; without an inbox always 1. Of a message that is given up without an attempt, as
   * unreadable or because processes died of it: how many there were, 0 for none.
   */
  readonly attempt: number
  readonly error: HooklineError
  /** What comes next: the inbox hands it out again, or puts it on the list of the dead; without one, the sender comes back. */
  readonly next: { readonly retryAt: number } | 'dead' | 'sender'
}

/** The channels of a receiver, by what they tell of. */
export const channels = {
  received: channel('hookline:received'),
  rejected: channel('hookline:rejected'),
  stored: channel('hookline:stored'),
  handled: channel('hookline:handled'),
  failed: channel('hookline:failed'),
} as const

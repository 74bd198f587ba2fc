/** One attempt to handle a message: the arguments of its handlers, and the data that is reported about the attempt. */

import type { Clock } from '../kit/clock.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Deadline } from './deadline.ts'
import type { Delivery, HandlerNames } from './delivery.ts'
import type { HandlerRun } from './events.ts'
import type { Member } from './transaction.ts'

/**
 * The progress of a message in an inbox: the names of its handlers that are done, have failed or wait. The empty name
 * stands for all handlers without a name.
 */
export interface Progress extends HandlerNames {
  /** The handlers that succeeded, including in earlier attempts. */
  done: readonly string[]
  /** The handlers that failed in this attempt; before the attempt calls its handlers, those that failed in the previous attempt. */
  failed: readonly string[]
  /** The names of the handlers to call; undefined for all. */
  readonly only: readonly string[] | undefined
  /** The time at which each waiting handler gets its turn, in milliseconds since the epoch, keyed by handler name. */
  turns: ReadonlyMap<string, number>
  /** Stores the progress while other handlers still run. */
  readonly save: () => void
}

/** The part of an attempt that batch handlers need. */
interface Batching {
  /** Whether the message is handled alone, in a batch of its own, because it may have crashed a process. */
  readonly isAlone: boolean
  /** The size of the message as stored, in bytes. */
  readonly bytes: number
  /** The values that a transaction needs to complete the message; undefined without a transaction. */
  readonly member: Member | undefined
  /** Lets another message take the place of this one. Called when the handlers that get single messages have ended. */
  leavePlace(): void
}

export interface Attempt {
  readonly delivery: Delivery
  readonly deadline: Deadline
  /** The message as it was before any schema was applied. */
  readonly wire: ReceivedMessage
  /** The message that the handlers get. */
  readonly message: ReceivedMessage
  /** The number of the attempt, counted from 1. */
  readonly number: number
  readonly clock: Clock
  /** When the attempt started, on the monotonic clock; undefined when the attempt is not measured. */
  readonly startedAt?: number | undefined
  /** The results of the handlers that have ended; undefined when the attempt is not measured. */
  readonly runs?: HandlerRun[] | undefined
  /** The progress of the message; undefined without an inbox, where a retry calls all handlers again. */
  readonly progress?: Progress | undefined
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
  /** The values that batch handlers need; undefined when the inbox started without a batch handler. */
  readonly batching?: Batching | undefined
  /** Whether no handler matched the message. */
  isIgnored: boolean
  /** Ends the trace of the attempt; undefined when the attempt is not traced. */
  endTrace?: (error?: HooklineError) => void
}

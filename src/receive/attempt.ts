/** One attempt at a message: the arguments of its handlers, and the data that is reported. */

import type { Clock } from '../kit/clock.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Deadline } from './deadline.ts'
import type { Delivery, HandlerNames } from './delivery.ts'
import type { HandlerRun } from './events.ts'
import type { Member } from './transaction.ts'

/** The progress of a message in an inbox, by the names of its handlers. The empty name stands for all handlers without a name. */
export interface Progress extends HandlerNames {
  /** The handlers that succeeded, including in earlier attempts. */
  done: readonly string[]
  /** The handlers that failed in this attempt; until it calls its handlers, those that failed in the previous one. */
  failed: readonly string[]
  /** The names of the handlers that run; undefined for all. */
  readonly only: readonly string[] | undefined
  /** The time at which each waiting handler gets its turn, in milliseconds since the epoch, keyed by handler name. */
  turns: ReadonlyMap<string, number>
  /** Stores the progress while other handlers still run. */
  readonly save: () => void
}

/** The part of an attempt that batch handlers need. */
interface Batching {
  /** Whether the message runs alone, because it may have ended a process: no other message joins its batch. */
  readonly isAlone: boolean
  /** The size of the message as it is stored. */
  readonly bytes: number
  /** Undefined without a transaction. */
  readonly member: Member | undefined
  /** Called when the handlers that get a single message have ended. */
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
  /** When the attempt started, on the monotonic clock; undefined when nothing needs the time. */
  readonly startedAt?: number | undefined
  /** The handlers that have ended; undefined when nothing needs them. */
  readonly runs?: HandlerRun[] | undefined
  /** Undefined without an inbox: all handlers run again. */
  readonly progress?: Progress | undefined
  /** Whether the message is in the inbox. */
  readonly isStored: boolean
  /** Undefined when the inbox started without a batch handler. */
  readonly batching?: Batching | undefined
  /** Whether no handler matched. */
  isIgnored: boolean
  /** Ends the trace of the attempt; undefined when the attempt is not traced. */
  endTrace?: (error?: HooklineError) => void
}

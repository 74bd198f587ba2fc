/** One attempt at a message: the arguments of its handlers, and the data that is reported. */

import type { Clock } from '../kit/clock.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Deadline } from './deadline.ts'
import type { Delivery, HandlerNames } from './delivery.ts'
import type { HandlerRun } from './events.ts'
import type { Member } from './transaction.ts'

/** The progress of a message in an inbox, by the names of its handlers. The empty name stands for all handlers without one. */
export interface Progress extends HandlerNames {
  /** The handlers that succeeded, in earlier attempts, too. */
  done: readonly string[]
  /** The handlers that failed: in the previous attempt, until this one calls its handlers. */
  failed: readonly string[]
  /** The names of the handlers that run; undefined for all. */
  readonly only: readonly string[] | undefined
  /** When it is the turn of handlers that wait for it, in milliseconds since the epoch, by their names. */
  turns: ReadonlyMap<string, number>
  /** Stores the progress while other handlers still run. */
  readonly save: () => void
}

/** The part of an attempt that handlers of batches need. */
interface Batching {
  /** Whether nothing else runs beside it, because it may have ended a process: no other message comes. */
  readonly isAlone: boolean
  /** The size of the message as it is stored. */
  readonly bytes: number
  /** Undefined without a transaction. */
  readonly member: Member | undefined
  /** Called when the handlers that get one message have ended. */
  leavePlace(): void
}

export interface Attempt {
  readonly delivery: Delivery
  readonly deadline: Deadline
  /** The message before any schema. */
  readonly wire: ReceivedMessage
  /** The message that the handlers get. */
  readonly message: ReceivedMessage
  /** Counted from 1. */
  readonly number: number
  readonly clock: Clock
  /** On the monotonic clock; undefined when nothing needs it. */
  readonly startedAt?: number | undefined
  /** The handlers that have ended; undefined when nothing needs them. */
  readonly runs?: HandlerRun[] | undefined
  /** Undefined without an inbox: all handlers run again. */
  readonly progress?: Progress | undefined
  /** Whether it is in the inbox. */
  readonly isStored: boolean
  /** Undefined when the inbox started without a handler of batches. */
  readonly batching?: Batching | undefined
  /** Whether no handler matched. */
  isIgnored: boolean
  /** Ends its trace; undefined when it is not traced. */
  endTrace?: (error?: HooklineError) => void
}

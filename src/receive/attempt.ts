/** One attempt at a message: what its handlers get, and what is to be told of them. */

import type { Clock } from '../kit/clock.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Deadline } from './deadline.ts'
import type { Delivery, HandlerNames } from './delivery.ts'
import type { HandlerRun } from './events.ts'

/** How far the handlers of a message in an inbox are, by their names; the empty one is that of all without a name. */
export interface Progress extends HandlerNames {
  /** In earlier attempts, too. */
  done: readonly string[]
  /** In the previous attempt, until this one calls its handlers. */
  failed: readonly string[]
  /** The names of the handlers that run; undefined for all. */
  readonly only: readonly string[] | undefined
  /** Stores what is done, while others go on. */
  readonly save: () => void
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
  /** Whether no handler matched. */
  isIgnored: boolean
}

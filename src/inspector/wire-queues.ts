/** Queues on the wire: their counts, their plots and their dead letters. See wire.ts. */

import type { ErrorLine } from './wire-message.ts'

/** A queue, as it was counted last. */
export interface QueueStatus {
  /** The name of the part. */
  readonly part: string
  readonly status: 'ok' | 'degraded' | 'closing' | 'unavailable'
  readonly waiting: number
  readonly active: number
  /** Of those that wait: how many were tried before. Undefined where the engine does not count them. */
  readonly retrying?: number
  readonly deadLetters: number
  readonly oldestDueAgeMs: number
  /** When the engine counted; undefined when it did not answer. */
  readonly asOf?: number
  /** Of a destination: one for each URL. */
  readonly circuits?: readonly CircuitLine[]
}

export interface CircuitLine {
  readonly url: string
  readonly state: 'closed' | 'open' | 'half_open'
  readonly openSince?: number
  readonly probeAt?: number
}

/** One point for each interval, the oldest first; the last one is not over yet. */
export interface Series {
  readonly part: string
  /** Between two points. */
  readonly intervalMs: number
  /** The beginning of the first interval. */
  readonly from: number
  /** Messages that were done, and attempts that failed or were refused, in each. */
  readonly done: readonly number[]
  readonly failed: readonly number[]
  /** Of the handlers or attempts that ended, in milliseconds; null where none did. */
  readonly p50: readonly (number | null)[]
  readonly p95: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
  /** Waiting and active at the end of each; null where it was not counted. */
  readonly depth: readonly (number | null)[]
}

/** Dead letters of a queue. */
export interface DeadLetters {
  readonly part: string
  readonly groups: readonly { readonly reason: string; readonly count: number; readonly latestAt: number }[]
  /** Whether `groups` counts all; false when they are so many that only the oldest were read. */
  readonly isWhole: boolean
  /** A page of those with the reason, the oldest first. */
  readonly letters: readonly Letter[]
  /** Pass it as `after` for the next page. */
  readonly next?: string
}

export interface Letter {
  readonly id: string
  readonly reason: string
  readonly failedAt: number
  readonly attempts: number
  readonly type?: string
  readonly name?: string
  readonly user?: string
  readonly error?: ErrorLine
  /** The row, when its message is still kept. */
  readonly row?: number
  /** The beginning of the body as text. */
  readonly excerpt: string
}

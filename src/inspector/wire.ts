/**
 * What the inspector and its page send each other, as JSON: types only, here and in `wire-message.ts`. Times are in milliseconds since the epoch by the
 * clock of the app, durations in milliseconds. Strings of strangers may hold anything: the page shows them as text nodes.
 *
 * | path | answers |
 * |---|---|
 * | GET `/` `/page.js` `/page.css` | the page |
 * | GET `/api/setup` | {@link Setup} |
 * | GET `/api/stream` | server-sent events: {@link StreamEvents} by their names; each `rows` has an id, and a page that comes back with it gets what it missed |
 * | GET `/api/message?id=` | {@link Detail} |
 * | GET `/api/explanation?id=` | {@link Explanation}, of a message whose signature was refused |
 * | GET `/api/series?part=&minutes=` | {@link Series} |
 * | GET `/api/dead-letters?part=&reason=&after=` | {@link DeadLetters} |
 * | POST `/api/redrive`, `/api/drop` | {@link Change} → {@link Changed} |
 * | POST `/api/send` | {@link Send} → {@link Sent} |
 * | POST `/api/faults` | {@link Fault} → {@link Fault}, as it is in force now |
 * | POST `/api/time` | {@link TimeChange} → {@link Time} |
 *
 * A POST has `content-type: application/json` and `x-hookline-inspector: 1`. Anything that fails is answered with its status
 * and {@link Problem}.
 */

import type { Tampering } from '../sender/tamper.ts'
import type { AttemptLine, ErrorLine, Row } from './wire-message.ts'

/** What may be done: look, or also change things. */
export type Access = 'read' | 'write'

/** What the inspector shows, and what it can do. */
export interface Setup {
  /** Of Hookline. */
  readonly version: string
  readonly access: Access
  readonly parts: readonly Part[]
  /** The subcommand of `hookline` that serves the page; undefined for an app. */
  readonly command?: 'listen' | 'queue'
  /** The names of the senders that messages can be sent with; empty: nothing can be sent. */
  readonly senders: readonly string[]
  readonly tamperings: readonly Tampering[]
  /** Whether faults can be set. */
  readonly development: boolean
  /** The clock of the app, when it can be moved. */
  readonly time?: Time
  /** How many messages are kept. */
  readonly keep: { readonly messages: number; readonly refused: number }
}

/** A receiver, destination, collector or queue that is watched. */
export interface Part {
  /** Unique. */
  readonly name: string
  readonly kind: 'receiver' | 'destination' | 'collector' | 'queue'
  /** Whether it has a queue, with dead letters. */
  readonly hasQueue: boolean
}

/** The events of the stream, by name. */
export interface StreamEvents {
  /** `isReset`: forget all rows first. Rows are new or changed, in any order. The newest are kept: `keep.messages` of them, and `keep.refused` of those with `isRefused`. */
  readonly rows: { readonly isReset: boolean; readonly rows: readonly Row[] }
  readonly queues: readonly QueueStatus[]
  /** Sent when it changes by anything but its speed, and about each second while a page can move it. */
  readonly time: Time
  /** The faults in force changed. */
  readonly faults: readonly Fault[]
}

/** The clock. `speed`: how many milliseconds pass in one of the machine's; 0 while it stands still. */
export interface Time {
  readonly now: number
  readonly speed: number
  /** Whether it is being moved forward at this moment. */
  readonly isMoving: boolean
}

/** Which dead letters to redrive or drop: by id, by reason, or all when neither is given. */
export interface Change {
  readonly part: string
  readonly ids?: readonly string[]
  readonly reason?: string
  /** Only says what would happen. */
  readonly dryRun: boolean
}

export interface Changed {
  readonly count: number
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
  readonly dryRun: boolean
}

/** A message to send. */
export interface Send {
  readonly sender: string
  readonly message: unknown
  readonly tamper?: Tampering
}

export interface Sent {
  readonly ok: boolean
  readonly attempts: readonly AttemptLine[]
}

/** What the next requests are answered. `count` 0: nothing special. Without a status, the delay comes before the normal answer. */
export interface Fault {
  /** The name of the receiver. */
  readonly part: string
  readonly count: number
  readonly status?: number
  readonly delayMs?: number
}

/** Moves the clock. Either may be left out. */
export interface TimeChange {
  readonly advanceMs?: number
  readonly speed?: number
}

/** What is wrong, and what to do: one sentence or more. */
export interface Problem {
  readonly error: string
}

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

/**
 * The types of the JSON between the inspector and its page. Times are in milliseconds since the epoch by the clock of the app,
 * durations in milliseconds. Strings are untrusted: the page shows them as text nodes.
 *
 * | path | answers |
 * |---|---|
 * | GET `/` `/page.js` `/page.css` | the page |
 * | GET `/api/setup` | {@link Setup} |
 * | GET `/api/stream` | server-sent events: {@link StreamEvents} by name; each `rows` has an id, with which a page that reconnects gets what it missed |
 * | GET `/api/message?id=` | {@link Detail} |
 * | GET `/api/explanation?id=` | {@link Explanation}, of a message whose signature was refused |
 * | GET `/api/series?part=&minutes=` | {@link Series} |
 * | GET `/api/events` | a {@link PartEvents} for each receiver |
 * | GET `/api/dead-letters?part=&group=&after=` | {@link DeadLetters} |
 * | GET `/api/history?part=&since=&until=&type=&event=&userId=&where=&handler=&after=` | a {@link HandledLine} each line, at most 100, oldest first; a {@link Problem} at the end if it failed |
 * | POST `/api/replay` | {@link ReplayRequest} → {@link ReplayPlan} with `dryRun`, else {@link ReplayStatus} |
 * | POST `/api/stop-replay` | `{ part, id }` → {@link ReplayStatus} |
 * | POST `/api/redrive`, `/api/drop` | {@link Change} → {@link Changed} |
 * | POST `/api/send-again` | {@link SendAgain} → {@link Sent} |
 *
 * Each request to `/api/` has the header `x-hookline-inspector` with the token of the URL. With `authorize`, a POST has the header
 * with any value. A POST has `content-type: application/json`. An error has a status and a {@link Problem}.
 */

import type { SkipReason } from 'hookline/sender'

/** The permission to look, or also to change things. */
export type Access = 'read' | 'write'

export interface Setup {
  readonly access: Access
  /** The time of the app's clock. */
  readonly now: number
  readonly parts: readonly Part[]
  /** The subcommand of `hookline` that serves the page; undefined for an app. */
  readonly command?: 'listen' | 'queue'
  /** The address that `hookline listen` listens on. */
  readonly address?: string
  /** The names of the senders that messages can be sent again with; empty when there are none. */
  readonly senders: readonly string[]
  readonly keep: { readonly messages: number; readonly refused: number }
}

export interface Part {
  readonly name: string
  readonly kind: 'receiver' | 'destination' | 'collector' | 'queue'
  readonly hasQueue: boolean
  readonly hasHistory: boolean
}

/** The events of the stream, by name. */
export interface StreamEvents {
  /** `isReset`: forget all rows first. Rows are new or changed, in any order. The page keeps the newest within the limits of `keep`. */
  readonly rows: { readonly isReset: boolean; readonly rows: readonly Row[] }
  readonly queues: readonly QueueStatus[]
  readonly replays: readonly ReplayStatus[]
}

/** The dead letters to redrive or drop: by id, by group, or all when neither is given. */
export interface Change {
  readonly part: string
  readonly ids?: readonly string[]
  readonly group?: string
  /** Whether it only counts. */
  readonly dryRun: boolean
}

export interface Changed {
  readonly count: number
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

export interface SendAgain {
  readonly sender: string
  /** The id of the row. */
  readonly id: number
}

export interface Sent {
  readonly ok: boolean
  readonly attempts: readonly AttemptLine[]
}

export interface Problem {
  readonly error: string
}

export interface QueueStatus {
  readonly part: string
  readonly status: 'ok' | 'degraded' | 'closing' | 'unavailable'
  /** Why it accepts no messages, or does not respond. */
  readonly reason?: string
  readonly waiting: number
  readonly active: number
  /** The waiting jobs that were tried before; undefined where the engine does not count them. */
  readonly retrying?: number
  readonly deadLetters: number
  readonly oldestDueAgeMs: number
  /** When the engine counted; undefined when it did not respond. */
  readonly asOf?: number
  readonly urls?: readonly UrlLine[]
  /** Whether the destination is disabled. It sends nothing until it is enabled. */
  readonly isOff?: boolean
  /** Whether all workers of the queue are paused. */
  readonly isPaused?: boolean
}

export interface UrlLine {
  readonly url: string
  readonly circuit: 'closed' | 'open' | 'half_open'
  readonly openSince?: number
  readonly probeAt?: number
  readonly delivered: number
  readonly failed: number
  /** `why` is a status, or the error in words. */
  readonly lastFailure?: { readonly at: number; readonly why: string }
}

/** The plotted values of each interval, oldest first. The last interval has not ended. */
export interface Series {
  readonly intervalMs: number
  readonly from: number
  readonly done: readonly number[]
  readonly failed: readonly number[]
  /** Durations of handlers or attempts, in milliseconds; null when none ended. */
  readonly p50: readonly (number | null)[]
  readonly p95: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
  /** Waiting and active jobs at the end of each interval; null when they were not counted. */
  readonly depth: readonly (number | null)[]
}

/** The events of a receiver since the inspector was created. */
export interface PartEvents {
  readonly part: string
  /** Events without a schema first, then those that failed; each by frequency. */
  readonly events: readonly EventLine[]
  /** The number of messages of events that are not listed, because there are too many. */
  readonly others: number
}

export interface EventLine {
  readonly type: string
  /** The event, for track messages. */
  readonly event?: string
  /** The number of messages that arrived: 0 for an event that has a schema and did not arrive. */
  readonly count: number
  /** The number in each of the last 15 minutes, oldest first. The last minute has not ended. */
  readonly minutes: readonly number[]
  readonly firstAt?: number
  readonly lastAt?: number
  /** Undefined when the receiver has no schemas for such messages. */
  readonly hasSchema?: boolean
  /** The number that did not match the schema in this process. */
  readonly failed: number
  /** By frequency, highest first. */
  readonly fields: readonly FieldLine[]
  /** The number of failures of fields that are not listed, because there are too many. */
  readonly otherFields: number
}

/** A field that did not match its schema, and why. */
export interface FieldLine {
  /** `properties.items[].sku`. */
  readonly path: string
  /** The name of the fault in the schema library; empty when it has none. */
  readonly code: string
  /** The number of messages. */
  readonly count: number
}

export interface DeadLetters {
  /** By reason and error, the group with the newest letter first. */
  readonly groups: readonly LetterGroup[]
  /** Whether `groups` counts all letters. False when they are so many that only the newest were read. */
  readonly isWhole: boolean
  /** Newest first. */
  readonly letters: readonly Letter[]
  /** Pass it as `after` for the next page. */
  readonly next?: string
}

export interface LetterGroup {
  /** The reason and the error, without the numbers that differ. */
  readonly name: string
  readonly reason: string
  /** The error of the newest letter. */
  readonly error: string
  readonly count: number
  readonly latestAt: number
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
  /** The id of the replay that created this copy. */
  readonly replayId?: string
  /** The id of the row, while its message is kept. */
  readonly row?: number
  readonly excerpt: string
}

/** A handled message in the history. */
export interface HandledLine extends Pick<Letter, 'id' | 'type' | 'name' | 'user' | 'row' | 'excerpt'> {
  readonly handledAt: number
  /** The named handlers that handled it. The empty name stands for all others. */
  readonly handlers: readonly string[]
  /** Whether no handler matched. */
  readonly ignored: boolean
  /** Pass it as `after` for the next page. */
  readonly cursor: string
}

/** The messages to replay: those that match all given fields. */
export interface ReplayRequest {
  readonly part: string
  /** Required without `dryRun`. */
  readonly id?: string
  readonly since?: number
  readonly until?: number
  readonly type?: string
  readonly event?: string
  readonly userId?: string
  /** A field and its value: `properties.order_id=42`. */
  readonly where?: string
  readonly ids?: readonly string[]
  readonly handlers?: readonly string[]
  readonly maxPerSecond?: number
  /** Whether it only counts. */
  readonly dryRun: boolean
  /** The count of a dry run, to show the progress. */
  readonly total?: number
}

export interface ReplayPlan {
  readonly count: number
  readonly types: Readonly<Record<string, number>>
  readonly events: Readonly<Record<string, number>>
}

/** A replay of this process, running or ended. `count` is the number of messages given to the handlers. */
export interface ReplayStatus {
  readonly request: ReplayRequest
  readonly state: 'running' | 'complete' | 'stopped' | 'failed'
  readonly count: number
  readonly error?: string
}

/**
 * The state of a message: `done` (handled, delivered, collected), `ignored` (no handler matches), `skipped` (not sent by its destination),
 * `waiting` (for an attempt, or in one), `failed` (answered so that the sender retries), `refused` (answered 4xx, no retry), `dead` (a dead
 * letter).
 */
export type RowState = 'done' | 'ignored' | 'skipped' | 'waiting' | 'failed' | 'refused' | 'dead'

export interface Row {
  readonly id: number
  /** When it arrived or was queued, or, for a copy, first appeared. */
  readonly at: number
  readonly kind: 'received' | 'sent' | 'collected'
  readonly part: string
  readonly state: RowState
  /** One of the seven types, or `batch`; undefined for a body that is not a message. */
  readonly type?: string
  readonly name?: string
  /** Its `userId`, or its `anonymousId`. */
  readonly user?: string
  /** The `messageId`, or a digest of the bytes: rows of one message share it. A collected request has those of its calls, at most 100. */
  readonly messageIds?: readonly string[]
  /** The id of the replay that created this copy. */
  readonly replayId?: string
  /** The number of refused calls of a collected request, if any. */
  readonly refusedCalls?: number
  readonly status?: number
  /** Why it is not done: the code of an error, or the reason of a dead letter or a skipped message. */
  readonly code?: string
  /** The length of the body, in bytes. */
  readonly bytes: number
  readonly attempts: number
  /** When the next attempt is due, while it waits for that time. */
  readonly retryAt?: number
  /** While it waits: the URLs that gave a final response and are not tried again. */
  readonly finalUrls?: readonly string[]
  /** The duration of the handlers, or of the latest attempt, in milliseconds. */
  readonly durationMs?: number
  /** Whether a stranger may have sent it. Such rows are kept separately and displace no others. */
  readonly isRefused?: boolean
}

export interface Detail {
  readonly row: Row
  /** The request of a message that arrived; undefined for a sent message. */
  readonly request?: RequestLine
  readonly body: Body
  readonly steps: readonly Step[]
  /** The id of the delivery and of its dead letter; undefined for a refused request. */
  readonly deliveryId?: string
  /** Whether it is or was in the queue of its part. */
  readonly isStored: boolean
  readonly canExplain: boolean
  /** The four hours in which a destination retries it; set after its first attempt. */
  readonly window?: { readonly startedAt: number; readonly endsAt: number }
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly remoteAddress?: string
  /** Names in lower case. The value is null if it may be a secret. */
  readonly headers: readonly (readonly [name: string, value: string | null])[]
}

/** The exact bytes, with each write key as `…`: `text` if they are UTF-8, otherwise `base64`. Neither if no body is shown. */
export interface Body {
  readonly size: number
  readonly text?: string
  readonly base64?: string
}

/** A step of a message, for its timeline. */
export type Step = { readonly at: number } & (
  | { readonly what: 'arrived'; readonly remoteAddress?: string; readonly bytes: number; readonly isCopy: boolean }
  /** `secretIndex`: the index of the matching secret. `isVerified` false: it has no signature. `hasHeader`: it has a header instead. */
  | {
      readonly what: 'checked'
      readonly isVerified: boolean
      readonly hasHeader?: boolean
      readonly secretIndex?: number
      readonly source?: string
    }
  /** No secret was given, so the signature was not checked. */
  | { readonly what: 'unchecked' }
  | { readonly what: 'stored'; readonly durationMs: number }
  | {
      readonly what: 'handled' | 'failed'
      readonly attempt: number
      readonly durationMs: number
      readonly runs: readonly RunLine[]
      readonly error?: ErrorLine
      /** After a failure. */
      readonly next?: 'sender' | 'dead_letter' | number
    }
  | { readonly what: 'ignored' }
  | { readonly what: 'skipped'; readonly reason: SkipReason }
  | { readonly what: 'answered'; readonly status: number; readonly durationMs: number; readonly error?: ErrorLine }
  | { readonly what: 'collected'; readonly accepted: number; readonly refused: number; readonly source?: string }
  | { readonly what: 'queued' }
  | { readonly what: 'redriven' | 'dropped' }
  | { readonly what: 'attempt'; readonly attempt: AttemptLine }
  /** The end of a round. */
  | {
      readonly what: 'round'
      readonly status: 'delivered' | 'retrying' | 'failed'
      readonly retryAt?: number
      readonly reason?: string
      /** The error of a `filter` or `transform`. */
      readonly error?: ErrorLine
    }
)

export interface RunLine {
  readonly on: string
  readonly name: string
  readonly durationMs: number
  readonly error?: ErrorLine
}

export interface ErrorLine {
  readonly code: string
  readonly message: string
  readonly stack?: string
}

export interface AttemptLine {
  readonly url: string
  readonly at: number
  readonly durationMs: number
  readonly ok: boolean
  readonly status?: number
  readonly error?: string
  readonly reason?: string
  readonly body: string
}

export interface Explanation {
  readonly message: string
}

/**
 * The types of the JSON between the inspector and its page. Times are in milliseconds since the epoch, according to the clock of the
 * app. Durations are in milliseconds. Strings are untrusted: the page shows them as text nodes.
 *
 * | path | answers |
 * |---|---|
 * | GET `/` `/page.js` `/page.css` | the page |
 * | GET `/api/setup` | {@link Setup} |
 * | GET `/api/stream` | server-sent events: {@link StreamEvents} by name; a `rows` event has an id, which a page sends when it reconnects, to get the rows that it missed |
 * | GET `/api/message?id=` | {@link Detail} |
 * | GET `/api/explanation?id=` | {@link Explanation} of a message whose signature was refused |
 * | GET `/api/series?part=&minutes=` | {@link Series} |
 * | GET `/api/events` | a {@link PartEvents} for each receiver |
 * | GET `/api/dead-letters?part=&group=&after=` | {@link DeadLetters} |
 * | GET `/api/history?part=&since=&until=&type=&event=&userId=&where=&handler=&after=` | one {@link HandledLine} per line, at most 100, oldest first; a {@link Problem} at the end if the history failed |
 * | POST `/api/replay` | {@link ReplayRequest} → {@link ReplayPlan} with `dryRun`, otherwise {@link ReplayStatus} |
 * | POST `/api/stop-replay` | `{ part, id }` → {@link ReplayStatus} |
 * | POST `/api/redrive`, `/api/drop` | {@link Change} → {@link Changed} |
 * | POST `/api/send-again` | {@link SendAgain} → {@link Sent} |
 *
 * Each request to `/api/` has the header `x-hookline-inspector` with the token from the URL. With `authorize`, only a POST needs the
 * header, with any value. A POST has `content-type: application/json`. An error has a status and a {@link Problem}.
 */

import type { SkipReason } from 'hookline/sender'

/** Permission to look at the page (`read`), or also to make changes (`write`). */
export type Access = 'read' | 'write'

export interface Setup {
  readonly access: Access
  /** The current time, according to the app's clock. */
  readonly now: number
  readonly parts: readonly Part[]
  /** The subcommand of `hookline` that serves the page; undefined when an app serves it. */
  readonly command?: 'listen' | 'queue'
  /** The address that `hookline listen` listens on. */
  readonly address?: string
  /** The names of the senders with which messages can be sent again; empty when there are none. */
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
  /** The new and changed rows, in any order. If `isReset` is true, the page first discards the rows that it has. */
  readonly rows: { readonly isReset: boolean; readonly rows: readonly Row[] }
  readonly queues: readonly QueueStatus[]
  readonly replays: readonly ReplayStatus[]
}

/** Selects the dead letters to redrive or drop: by id, by group, or all of them when neither `ids` nor `group` is given. */
export interface Change {
  readonly part: string
  readonly ids?: readonly string[]
  readonly group?: string
  /** Whether to count the dead letters without changing them. */
  readonly dryRun: boolean
}

export interface Changed {
  readonly count: number
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

export interface SendAgain {
  readonly sender: string
  /** The id of the row of the message to send. */
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
  /** The reason why the queue accepts no messages, or does not respond. */
  readonly reason?: string
  readonly waiting: number
  readonly active: number
  /** The number of waiting jobs that have been tried before; undefined if the engine does not count such jobs. */
  readonly retrying?: number
  readonly deadLetters: number
  readonly oldestDueAgeMs: number
  /** The time at which the engine counted the jobs; undefined if the engine did not respond. */
  readonly asOf?: number
  readonly urls?: readonly UrlLine[]
  /** Whether the destination is disabled. A disabled destination sends nothing. */
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
  /** The latest failure. `why` is the status of the answer, or describes the error if there was no answer. */
  readonly lastFailure?: { readonly at: number; readonly why: string }
}

/** The values to plot. Each array has one value for each interval, oldest first. The last interval has not ended yet. */
export interface Series {
  readonly intervalMs: number
  readonly from: number
  readonly done: readonly number[]
  readonly failed: readonly number[]
  /** Percentiles of the durations of handlers or attempts, in milliseconds; null for an interval in which no handler or attempt ended. */
  readonly p50: readonly (number | null)[]
  readonly p95: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
  /** The number of waiting and active jobs at the end of each interval; null if they were not counted. */
  readonly depth: readonly (number | null)[]
}

/** The events of a receiver since the inspector was created. */
export interface PartEvents {
  readonly part: string
  /** Events without a schema, then events that did not match their schema, then all others: in each group, the most frequent first. */
  readonly events: readonly EventLine[]
  /** The number of messages whose events are not listed because there are too many events. */
  readonly others: number
}

export interface EventLine {
  readonly type: string
  /** The name of the event, for track messages. */
  readonly event?: string
  /** The number of messages that arrived: 0 for an event that has a schema but never arrived. */
  readonly count: number
  /** The number of messages in each of the last 15 minutes, oldest first. The last minute has not ended yet. */
  readonly minutes: readonly number[]
  readonly firstAt?: number
  readonly lastAt?: number
  /** Whether the event has a schema; undefined if the receiver has no schemas for messages of this type. */
  readonly hasSchema?: boolean
  /** The number of messages in this process that did not match the schema. */
  readonly failed: number
  /** The fields that did not match, the most frequent first. */
  readonly fields: readonly FieldLine[]
  /** The number of faults in fields that are not listed because there are too many fields. */
  readonly otherFields: number
}

/** A field that did not match its schema, and the fault. */
export interface FieldLine {
  /** The path of the field, such as `properties.items[].sku`. */
  readonly path: string
  /** The schema library's code for the fault; empty if the library gives no code. */
  readonly code: string
  /** The number of messages with this fault. */
  readonly count: number
}

export interface DeadLetters {
  /** The dead letters grouped by reason and error. The group with the newest dead letter comes first. */
  readonly groups: readonly LetterGroup[]
  /** Whether `groups` counts all dead letters; false when there are so many that only the newest were read. */
  readonly isWhole: boolean
  /** The dead letters, newest first. */
  readonly letters: readonly Letter[]
  /** Pass this as `after` to get the next page; undefined on the last page. */
  readonly next?: string
}

export interface LetterGroup {
  /** The reason and the error, without ids and numbers, which differ between letters. */
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
  /** The id of the row of this message; undefined if the row is not kept. */
  readonly row?: number
  readonly excerpt: string
}

/** A handled message in the history. */
export interface HandledLine extends Pick<Letter, 'id' | 'type' | 'name' | 'user' | 'row' | 'excerpt'> {
  readonly handledAt: number
  /** The names of the handlers that handled the message. The empty name stands for all handlers without a name. */
  readonly handlers: readonly string[]
  /** Whether the message was ignored because no handler matched. */
  readonly ignored: boolean
  /** Pass this as `after` to list the messages that follow this one. */
  readonly cursor: string
}

/** A request to replay messages of the history. A message must match each given condition, such as `since`, `type` or `ids`. */
export interface ReplayRequest {
  readonly part: string
  /** The id of the replay. Required unless `dryRun` is true. */
  readonly id?: string
  readonly since?: number
  readonly until?: number
  readonly type?: string
  readonly event?: string
  readonly userId?: string
  /** A field and its value, such as `properties.order_id=42`. */
  readonly where?: string
  readonly ids?: readonly string[]
  readonly handlers?: readonly string[]
  readonly maxPerSecond?: number
  /** Whether to count the messages without replaying them. */
  readonly dryRun: boolean
  /** The number of messages that a dry run counted. The page uses it to show the progress. */
  readonly total?: number
}

export interface ReplayPlan {
  readonly count: number
  readonly types: Readonly<Record<string, number>>
  readonly events: Readonly<Record<string, number>>
}

/** A running or ended replay in this process. `count` is the number of messages that it has replayed so far. */
export interface ReplayStatus {
  readonly request: ReplayRequest
  readonly state: 'running' | 'complete' | 'stopped' | 'failed'
  readonly count: number
  readonly error?: string
}

/**
 * The state of a message: `done` (handled, delivered or collected), `ignored` (no handler matches), `skipped` (its destination does
 * not send it), `waiting` (an attempt is due later, or is running), `failed` (the answer has a status after which the
 * sender retries), `refused` (the answer was 4xx, so the sender does not retry) or `dead` (a dead letter).
 */
export type RowState = 'done' | 'ignored' | 'skipped' | 'waiting' | 'failed' | 'refused' | 'dead'

export interface Row {
  readonly id: number
  /** The time at which the message arrived or was queued, or at which a copy that a replay created first appeared. */
  readonly at: number
  readonly kind: 'received' | 'sent' | 'collected'
  readonly part: string
  readonly state: RowState
  /** One of the seven message types, `custom` or `batch`; undefined for a body that is not a message. */
  readonly type?: string
  readonly name?: string
  /** The `userId` of the message, or else its `anonymousId`. */
  readonly user?: string
  /**
   * The `messageId`, or else a digest of the bytes. All rows of a message have the same id. A collected request has the ids of its calls,
   * at most 100.
   */
  readonly messageIds?: readonly string[]
  /** The id of the replay that created this copy. */
  readonly replayId?: string
  /** The number of refused calls in a collected request, if any. */
  readonly refusedCalls?: number
  readonly status?: number
  /** The reason why the message is not done: the code of an error, or the reason of a dead letter or a skipped message. */
  readonly code?: string
  /** The length of the body, in bytes. */
  readonly bytes: number
  readonly attempts: number
  /** The time at which the next attempt is due; undefined if the message does not wait for a retry. */
  readonly retryAt?: number
  /** The URLs that gave a final response and are not tried again. Set only while the message waits. */
  readonly finalUrls?: readonly string[]
  /** The duration of the handlers, or of the latest attempt, in milliseconds. */
  readonly durationMs?: number
  /** Whether the message may come from a stranger. Such messages are kept separately and never displace other messages. */
  readonly isRefused?: boolean
}

export interface Detail {
  readonly row: Row
  /** The request of a message that arrived; undefined for a sent message. */
  readonly request?: RequestLine
  readonly body: Body
  readonly steps: readonly Step[]
  /**
   * The id of the delivery or of the queued message. Its dead letter has the same id. Undefined for a refused request, a request to a
   * collector, and a message that was not queued.
   */
  readonly deliveryId?: string
  /** Whether the message is or was in the queue of its part. */
  readonly isStored: boolean
  readonly canExplain: boolean
  /** The four hours in which a destination retries the message; set after the first attempt. */
  readonly window?: { readonly startedAt: number; readonly endsAt: number }
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly remoteAddress?: string
  /** The headers, with names in lower case. A value that may be a secret is null. */
  readonly headers: readonly (readonly [name: string, value: string | null])[]
}

/** A body with each write key replaced by `…`: `text` if it is UTF-8, otherwise `base64`. Both are undefined if the body is not shown. */
export interface Body {
  readonly size: number
  readonly text?: string
  readonly base64?: string
}

/** A step in the timeline of a message. */
export type Step = { readonly at: number } & (
  | { readonly what: 'arrived'; readonly remoteAddress?: string; readonly bytes: number; readonly isCopy: boolean }
  /**
   * `isVerified` is false if there was no signature. `hasHeader` is true if a header was checked instead of a signature. `secretIndex` is
   * the index of the secret that matched.
   */
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
      /** The step after a failure: a retry by the sender, a dead letter or, as a number, the time of the next attempt. */
      readonly next?: 'sender' | 'dead_letter' | number
    }
  | { readonly what: 'ignored' }
  | { readonly what: 'skipped'; readonly reason: SkipReason }
  | { readonly what: 'answered'; readonly status: number; readonly durationMs: number; readonly error?: ErrorLine }
  | { readonly what: 'collected'; readonly accepted: number; readonly refused: number; readonly source?: string }
  | { readonly what: 'queued' }
  | { readonly what: 'redriven' | 'dropped' }
  | { readonly what: 'attempt'; readonly attempt: AttemptLine }
  /** The end of a round of attempts. */
  | {
      readonly what: 'round'
      readonly status: 'delivered' | 'retrying' | 'failed'
      readonly retryAt?: number
      readonly reason?: string
      /** The error that a `filter` or `transform` threw. */
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

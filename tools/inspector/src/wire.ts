/**
 * What the inspector and its page send each other, as JSON: types only. Times are in milliseconds since the epoch by the
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
 * | GET `/api/events` | a {@link PartEvents} for each receiver |
 * | GET `/api/dead-letters?part=&group=&after=` | {@link DeadLetters} |
 * | GET `/api/history?part=&since=&until=&type=&event=&userId=&where=&handler=&after=` | a {@link HandledLine} each line, 100 at most, the oldest first; at the end a {@link Problem} if it failed |
 * | POST `/api/replay` | {@link ReplayRequest} → {@link ReplayPlan} with `dryRun`, else {@link ReplayStatus} |
 * | POST `/api/stop-replay` | `{ part, id }` → {@link ReplayStatus} |
 * | POST `/api/redrive`, `/api/drop` | {@link Change} → {@link Changed} |
 * | POST `/api/send-again` | {@link SendAgain} → {@link Sent} |
 *
 * Each request to `/api/` has the header `x-hookline-inspector` with the token of the URL; where `authorize` decides, a POST has it
 * with any value. A POST has `content-type: application/json`. Anything that fails is answered with its status and {@link Problem}.
 */

import type { SkipReason } from 'hookline/sender'

/** What may be done: look, or also change things. */
export type Access = 'read' | 'write'

export interface Setup {
  readonly access: Access
  /** The time by the clock of the app. */
  readonly now: number
  readonly parts: readonly Part[]
  /** The subcommand of `hookline` that serves the page; undefined for an app. */
  readonly command?: 'listen' | 'queue'
  /** Where it listens for requests, of `hookline listen`. */
  readonly address?: string
  /** The names of the senders that messages can be sent again with; empty: nothing can be sent. */
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
  /** `isReset`: forget all rows first. Rows are new or changed, in any order. The newest are kept: `keep.messages` of them, and `keep.refused` of those with `isRefused`. */
  readonly rows: { readonly isReset: boolean; readonly rows: readonly Row[] }
  readonly queues: readonly QueueStatus[]
  readonly replays: readonly ReplayStatus[]
}

/** Which dead letters to redrive or drop: by id, by group, or all when neither is given. */
export interface Change {
  readonly part: string
  readonly ids?: readonly string[]
  readonly group?: string
  /** Only says what would happen. */
  readonly dryRun: boolean
}

export interface Changed {
  readonly count: number
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

export interface SendAgain {
  readonly sender: string
  /** That of the row. */
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
  /** Why it takes no messages, or does not answer. */
  readonly reason?: string
  readonly waiting: number
  readonly active: number
  /** Of those that wait: how many were tried before. Undefined where the engine does not count them. */
  readonly retrying?: number
  readonly deadLetters: number
  readonly oldestDueAgeMs: number
  /** When the engine counted; undefined when it did not answer. */
  readonly asOf?: number
  readonly urls?: readonly UrlLine[]
  /** Whether the destination is disabled: nothing is sent until it is enabled again. */
  readonly isOff?: boolean
  /** Whether all processes of the queue are paused. */
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

/** One point for each interval, the oldest first; the last one is not over yet. */
export interface Series {
  readonly intervalMs: number
  readonly from: number
  readonly done: readonly number[]
  readonly failed: readonly number[]
  /** How long handlers or attempts took, in milliseconds; null where none ended. */
  readonly p50: readonly (number | null)[]
  readonly p95: readonly (number | null)[]
  readonly p99: readonly (number | null)[]
  /** Waiting and active at the end of each; null where it was not counted. */
  readonly depth: readonly (number | null)[]
}

/** The events that came to a receiver since the inspector was created. */
export interface PartEvents {
  readonly part: string
  /** Those without a schema first, then those that failed; the most frequent first. */
  readonly events: readonly EventLine[]
  /** How many messages were of events that are not listed, because there are too many. */
  readonly others: number
}

export interface EventLine {
  readonly type: string
  /** Of track messages. */
  readonly event?: string
  /** How many messages arrived: 0 for an event that has a schema and did not come. */
  readonly count: number
  /** How many in each of the last 15 minutes, the oldest first; the last one is not over yet. */
  readonly minutes: readonly number[]
  readonly firstAt?: number
  readonly lastAt?: number
  /** Undefined where the receiver has no schemas for such messages. */
  readonly hasSchema?: boolean
  /** How many did not match the schema in this process. */
  readonly failed: number
  /** The most frequent first. */
  readonly fields: readonly FieldLine[]
  /** How often fields failed that are not listed, because there are too many. */
  readonly otherFields: number
}

/** A field that did not match its schema, and why. */
export interface FieldLine {
  /** `properties.items[].sku`. */
  readonly path: string
  /** What the library calls the fault; empty when it has no name. */
  readonly code: string
  /** In how many messages. */
  readonly count: number
}

export interface DeadLetters {
  /** By reason and error, the group with the newest first. */
  readonly groups: readonly LetterGroup[]
  /** Whether `groups` counts all; false when they are so many that only the newest were read. */
  readonly isWhole: boolean
  /** The newest first. */
  readonly letters: readonly Letter[]
  /** Pass it as `after` for the next page. */
  readonly next?: string
}

export interface LetterGroup {
  /** The reason and the error, without the numbers that differ. */
  readonly name: string
  readonly reason: string
  /** That of the newest. */
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
  /** That of the replay whose copy it is. */
  readonly replayId?: string
  /** The row, when its message is still kept. */
  readonly row?: number
  readonly excerpt: string
}

/** A message that was handled, and is kept. */
export interface HandledLine extends Pick<Letter, 'id' | 'type' | 'name' | 'user' | 'row' | 'excerpt'> {
  readonly handledAt: number
  /** The named ones that handled it; the empty name is that of all others. */
  readonly handlers: readonly string[]
  /** Whether no handler matched. */
  readonly ignored: boolean
  /** Pass it as `after` for those that follow. */
  readonly cursor: string
}

/** Which messages to replay: those that match all that is given. */
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
  /** Only counts. */
  readonly dryRun: boolean
  /** What a dry run counted, to show how far it is. */
  readonly total?: number
}

export interface ReplayPlan {
  readonly count: number
  readonly types: Readonly<Record<string, number>>
  readonly events: Readonly<Record<string, number>>
}

/** A replay that runs in this process, or did. `count`: so many were given to the handlers. */
export interface ReplayStatus {
  readonly request: ReplayRequest
  readonly state: 'running' | 'complete' | 'stopped' | 'failed'
  readonly count: number
  readonly error?: string
}

/**
 * How a message stands: `done` (handled, delivered, collected), `ignored` (no handler matches it), `skipped` (its destination does not send it), `waiting` (for its first
 * or its next attempt, or being handled), `failed` (its sender was answered that it should come again), `refused` (answered 4xx; no retry), `dead` (a dead letter).
 */
export type RowState = 'done' | 'ignored' | 'skipped' | 'waiting' | 'failed' | 'refused' | 'dead'

export interface Row {
  readonly id: number
  /** When it arrived, or was queued; of a copy, when it was first seen. */
  readonly at: number
  readonly kind: 'received' | 'sent' | 'collected'
  readonly part: string
  readonly state: RowState
  /** One of the seven, or `batch`; undefined for a body that is no message. */
  readonly type?: string
  readonly name?: string
  /** Its `userId`, else its `anonymousId`. */
  readonly user?: string
  /** Rows with one of these in common are of one message: its `messageId`, else a digest of its bytes. Of a collected request, those of its calls, 100 at most. */
  readonly messageIds?: readonly string[]
  /** That of the replay whose copy it is. */
  readonly replayId?: string
  /** Of a collected request, when it had any. */
  readonly refusedCalls?: number
  readonly status?: number
  /** Why it is not done: a code of an error, or the reason of a dead letter or of what was skipped. */
  readonly code?: string
  /** The length of the body, in bytes. */
  readonly bytes: number
  readonly attempts: number
  /** When the next attempt is due; set while it waits for that time. */
  readonly retryAt?: number
  /** While it waits: the URLs that gave a final response, which are not tried again. */
  readonly finalUrls?: readonly string[]
  /** How long the handlers took, or the attempt that ended last, in milliseconds. */
  readonly durationMs?: number
  /** True when strangers may have sent it: such rows are kept apart, and push no others out. */
  readonly isRefused?: boolean
}

export interface Detail {
  readonly row: Row
  /** The request of a message that arrived; undefined for a sent message. */
  readonly request?: RequestLine
  readonly body: Body
  readonly steps: readonly Step[]
  /** That of its dead letter, too; undefined for a refused request. */
  readonly deliveryId?: string
  /** Whether it is in the queue of its part, or was. */
  readonly isStored: boolean
  readonly canExplain: boolean
  /** The four hours in which a destination tries it; set after its first attempt. */
  readonly window?: { readonly startedAt: number; readonly endsAt: number }
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly remoteAddress?: string
  /** Names in lower case. The value of one that may hold a secret is null. */
  readonly headers: readonly (readonly [name: string, value: string | null])[]
}

/** The exact bytes, but for write keys, which read `…`: `text` when they are UTF-8, else `base64`. Neither, when no body was kept, or may be shown. */
export interface Body {
  readonly size: number
  readonly text?: string
  readonly base64?: string
}

/** A step of a message, for its timeline. */
export type Step = { readonly at: number } & (
  | { readonly what: 'arrived'; readonly remoteAddress?: string; readonly bytes: number; readonly isCopy: boolean }
  /** `secretIndex`: which of the secrets matched, from 0. `isVerified` false: no signature covers it. `hasHeader`: a header in place of one. */
  | {
      readonly what: 'checked'
      readonly isVerified: boolean
      readonly hasHeader?: boolean
      readonly secretIndex?: number
      readonly source?: string
    }
  /** No secret was given, so its signature was not checked. */
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

/** One message on the wire: its bytes, its request and its timeline. See wire.ts. */

/**
 * How a message stands: `done` (handled, delivered, collected), `waiting` (for its first or its next attempt, or being handled),
 * `failed` (its sender was answered that it should come again), `refused` (answered 4xx; no retry), `dead` (a dead letter).
 */
export type RowState = 'done' | 'waiting' | 'failed' | 'refused' | 'dead'

/** A message in the list. */
export interface Row {
  /** Grows: a newer message has a greater one. */
  readonly id: number
  /** When it arrived, or was queued. */
  readonly at: number
  readonly kind: 'received' | 'sent' | 'collected'
  /** The name of the part. */
  readonly part: string
  readonly state: RowState
  /** One of the seven, or `batch`; undefined for a body that is no message. */
  readonly type?: string
  /** The event of a track, the name of a page or a screen, the group of a group. */
  readonly name?: string
  /** Its `userId`, else its `anonymousId`. */
  readonly user?: string
  /** The status that it was answered, or that a URL answered last. */
  readonly status?: number
  /** Why it is not done: a code of an error, or the reason of a dead letter. */
  readonly code?: string
  /** Of the body. */
  readonly bytes: number
  /** Ended attempts: of its handlers, or rounds. */
  readonly attempts: number
  /** When the next attempt is due; set while it waits for that time. */
  readonly retryAt?: number
  /** Of the handlers, or of the attempt that ended last. */
  readonly durationMs?: number
  /** True when strangers may have sent it: such rows are kept apart, and push no others out. */
  readonly isRefused?: boolean
}

/** A message with everything that is known of it. */
export interface Detail {
  readonly row: Row
  /** Of one that arrived; undefined for a sent one. */
  readonly request?: RequestLine
  readonly body: Body
  /** The oldest first. */
  readonly steps: readonly Step[]
  /** Its id in the queue, for redrive and drop. */
  readonly jobId?: string
  /** Whether `/api/explanation` can tell why its signature was refused. */
  readonly canExplain: boolean
  /** Of a sent one that was tried: its four hours. */
  readonly window?: { readonly startedAt: number; readonly endsAt: number }
}

export interface RequestLine {
  readonly method: string
  readonly path: string
  readonly remoteAddress?: string
  /** Names in lower case. The value of one that may hold a secret is null. */
  readonly headers: readonly (readonly [name: string, value: string | null])[]
}

/** The exact bytes: `text` when they are UTF-8, else `base64`. Neither, when no body was read or kept. */
export interface Body {
  readonly size: number
  readonly text?: string
  readonly base64?: string
  /** Whether write keys were removed, which read `…`. Without text: of a body that is no JSON and may hold one. */
  readonly isRedacted?: boolean
}

/** A step of a message, for its timeline. */
export type Step = { readonly at: number } & (
  | { readonly what: 'arrived'; readonly remoteAddress?: string; readonly bytes: number; readonly isCopy: boolean }
  /** `secretIndex`: which of the secrets matched, from 0. `isVerified` false: no signature covers it. */
  | { readonly what: 'checked'; readonly isVerified: boolean; readonly secretIndex?: number; readonly source?: string }
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
    }
)

export interface RunLine {
  readonly on: string
  readonly name: string
  readonly durationMs: number
  readonly error?: ErrorLine
}

export interface ErrorLine {
  /** A code, or the name of an error. */
  readonly code: string
  readonly message: string
  readonly stack?: string
}

export interface AttemptLine {
  /** Its query reads `?…`. */
  readonly url: string
  readonly at: number
  readonly durationMs: number
  readonly ok: boolean
  readonly status?: number
  readonly error?: string
  readonly reason?: string
  /** The beginning of the answer. */
  readonly body: string
}

/** Why a signature was refused. */
export interface Explanation {
  readonly message: string
}

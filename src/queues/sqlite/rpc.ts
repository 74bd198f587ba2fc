/** The requests to a file's worker thread and its replies: plain data. */

import type { HooklineErrorCode } from '../../message/error.ts'
import type { QueueUse } from '../queue.ts'

/** What the thread needs to know about a queue. */
export interface QueueSettings {
  readonly name: string
  /** What it is reserved for. */
  readonly use?: QueueUse
  readonly dedupeWindowMs: number
  /** Number.MAX_SAFE_INTEGER for no bound. */
  readonly maxJobs: number
  /** How long to wait while another process writes, in milliseconds. */
  readonly timeoutMs: number
}

/** One call of a queue's store. `now` is the time by the queue's clock. */
export type Request = { readonly queue: QueueSettings } & (
  | Push
  | Claim
  | Finish
  | Release
  | { readonly kind: 'undoClaim'; readonly claim: number }
  | { readonly kind: 'nextDueAt' }
  | { readonly kind: 'counts'; readonly now: number }
  | { readonly kind: 'deadLetters'; readonly after: string | undefined; readonly limit: number }
  | { readonly kind: 'redrive'; readonly now: number; readonly ids: readonly string[] | 'all' }
  | { readonly kind: 'drop'; readonly ids: readonly string[]; readonly oldest: number }
  | { readonly kind: 'jobs'; readonly after: number; readonly limit: number }
  | { readonly kind: 'remove'; readonly ids: readonly string[] }
)

/** Stores jobs: a list for each of their fields. */
export interface Push {
  readonly kind: 'push'
  readonly now: number
  readonly ids: readonly Uint8Array[]
  readonly notBefore: readonly (number | undefined)[]
  readonly bodies: readonly Uint8Array[]
}

/** Claims due jobs, under a number that this process gives to no other claim. */
export interface Claim {
  readonly kind: 'claim'
  readonly now: number
  readonly limit: number
  readonly claim: number
}

/** One job and the claim on it. Whatever names a claim that has ended changes nothing. */
export interface ClaimRef {
  readonly seq: number
  readonly claim: number
}

/** Ends a claim as its handler decided. */
export interface Finish extends ClaimRef {
  readonly kind: 'finish'
  readonly now: number
  readonly outcome: 'complete' | 'retry' | 'deadLetter'
  readonly retryAt: number
  readonly reason: Uint8Array | undefined
  readonly retryState: Uint8Array | undefined
  /** Whether the body stays in the file, because it cannot be deleted. */
  readonly keepsBody?: boolean
}

/** Ends claims without an outcome. */
export interface Release {
  readonly kind: 'release'
  readonly claims: readonly ClaimRef[]
  readonly wereHandled: boolean
}

/** A job that was claimed. */
export interface ClaimedRow extends ClaimRef {
  readonly id: Uint8Array
  readonly claimCount: number
  readonly firstAt: number
  readonly dueAt: number
  readonly body: Uint8Array
  readonly retryState: Uint8Array | undefined
}

/** A job that could not be read. */
export interface UnreadableRow {
  readonly id: string
  readonly reason: string
}

/** The answer to a claim. */
export interface Claims {
  readonly jobs: readonly ClaimedRow[]
  /** Those that could not be read, and are dead letters now. */
  readonly unreadable: readonly UnreadableRow[]
  /** When the next job is due; 0 when one is due already. */
  readonly nextDueAt: number | undefined
}

/** Why a request failed: what becomes a HooklineError. */
interface Failure {
  readonly code: HooklineErrorCode
  readonly message: string
  /** SQLite's result code, if SQLite failed. */
  readonly errcode: number | undefined
}

/** The answer to a request. */
export type Reply = { readonly value: unknown } | { readonly failure: Failure }

/** Requests on their way to the thread. It ends when it gets `end` in place of them. */
export interface RequestMessage {
  /** Queues that the thread has not heard of. */
  readonly queues: readonly QueueSettings[]
  /** The requests that are not packed. */
  readonly others: readonly Request[]
  readonly buffer: ArrayBuffer
}

/** The replies to the requests of one message: their count, if all that they say is that it is done. */
export type ReplyMessage =
  | number
  | {
      readonly count: number
      /** Those that say more. A claim's jobs are packed, and their number stands in place of them. */
      readonly others: readonly (readonly [index: number, reply: Reply])[]
      readonly buffer: ArrayBuffer
      /** Whether the thread ends now, because the file must be opened anew. */
      readonly isLast: boolean
    }

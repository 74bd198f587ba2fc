/** What a queue asks of the thread that holds its file, and what that answers: plain data, for a message port. */

import type { DeadJob, QueueCounts } from './queue.ts'

/** Which hand-out a worker speaks of: that of a job (its number in the file), the so-manieth, to this worker. */
export interface Hold {
  readonly row: number
  readonly deliveries: number
  readonly owner: number
}

/** One thing to do. Times are in milliseconds since the epoch, by the clock of whoever asks. */
export type Command =
  | { readonly kind: 'push'; readonly now: number; readonly jobs: readonly PackedJob[] }
  | { readonly kind: 'claim'; readonly now: number; readonly limit: number; readonly owner: number }
  | { readonly kind: 'next'; readonly now: number }
  | { readonly kind: 'done'; readonly now: number; readonly hold: Hold }
  | {
      readonly kind: 'retry'
      readonly now: number
      readonly hold: Hold
      readonly at: number
      readonly state: Uint8Array | undefined
    }
  | {
      readonly kind: 'bury'
      readonly now: number
      readonly hold: Hold
      readonly reason: string
      readonly state: Uint8Array | undefined
    }
  | { readonly kind: 'release'; readonly now: number; readonly holds: readonly Hold[] }
  | { readonly kind: 'renew'; readonly now: number; readonly owner: number }
  | { readonly kind: 'counts'; readonly now: number }
  | { readonly kind: 'dead'; readonly after: string | undefined; readonly limit: number }
  | { readonly kind: 'redrive'; readonly now: number; readonly ids: readonly string[] | 'all' }
  | { readonly kind: 'drop'; readonly ids: readonly string[] | 'all' }

/** A job on its way into the file. */
export interface PackedJob {
  readonly id: string
  readonly body: Uint8Array
  /** Undefined: at once, whatever the clock says later. */
  readonly notBefore: number | undefined
}

/** A job on its way out. */
export interface ClaimedRow {
  readonly id: string
  readonly body: Uint8Array
  readonly state: Uint8Array | undefined
  readonly firstAt: number
  readonly hold: Hold
}

/** What a claim brings, and when the next job comes due. */
export interface Claim {
  readonly rows: readonly ClaimedRow[]
  readonly nextAt: number | undefined
}

/** What each kind of command is answered. */
export interface Answers {
  readonly push: undefined
  readonly claim: Claim
  readonly next: number | undefined
  readonly done: undefined
  readonly retry: undefined
  readonly bury: undefined
  readonly release: undefined
  readonly renew: undefined
  readonly counts: QueueCounts
  readonly dead: readonly DeadJob[]
  readonly redrive: number
  readonly drop: number
}

/** What came of one command. */
export type Answer = { readonly value: unknown } | { readonly full: true } | { readonly failed: string }

/** What the queue asks of the thread that has the file, and what that answers: plain data. */

/** One thing to do. `now` is the time by the queue's clock; bytes travel beside the calls, in their order. */
export type Call =
  | PushCall
  | ClaimCall
  | SettleCall
  | ReleaseCall
  | { readonly kind: 'renew'; readonly now: number; readonly owner: number; readonly leaseMs: number }
  /** `held` as in a claim. */
  | { readonly kind: 'leave'; readonly owner: number; readonly held: readonly number[] }
  | { readonly kind: 'nextAt'; readonly now: number }
  | { readonly kind: 'counts'; readonly now: number }
  | { readonly kind: 'dead'; readonly after: string | undefined; readonly limit: number }
  | { readonly kind: 'redrive'; readonly now: number; readonly ids: readonly string[] | 'all' }
  | { readonly kind: 'drop'; readonly ids: readonly string[]; readonly oldest: number }

/** Jobs to put in, one list a field. */
export interface PushCall {
  readonly kind: 'push'
  readonly now: number
  readonly ids: readonly string[]
  readonly notBefore: readonly (number | undefined)[]
  readonly bodies: readonly Uint8Array[]
}

export interface ClaimCall {
  readonly kind: 'claim'
  readonly now: number
  readonly limit: number
  readonly owner: number
  readonly leaseMs: number
  /** What this owner has, where an answer was lost: whatever else it was handed goes back, uncounted. */
  readonly held: readonly number[] | undefined
}

/** Which hand-out of which job: none other can settle it. */
export interface ClaimRef {
  readonly seq: number
  readonly deliveries: number
}

export interface SettleCall extends ClaimRef {
  readonly kind: 'settle'
  readonly now: number
  readonly owner: number
  readonly id: string
  readonly outcome: 'done' | 'retry' | 'dead'
  readonly retryAt: number
  readonly reason: string
  readonly state: Uint8Array | undefined
  /** Whether the body stays in the file, out of reach. */
  readonly leavesBody?: boolean
}

export interface ReleaseCall {
  readonly kind: 'release'
  readonly owner: number
  readonly claims: readonly ClaimRef[]
  /** Whether these hand-outs count. */
  readonly wereSeen: boolean
}

/** A job that was handed out. */
export interface Claimed extends ClaimRef {
  readonly id: string
  readonly firstAt: number
  readonly body: Uint8Array
  readonly state: Uint8Array | undefined
}

/** What came of a claim, and when the next one is worth it. */
export interface Claims {
  readonly jobs: readonly Claimed[]
  readonly nextAt: number | undefined
}

/** Why a call failed. */
export interface Failure {
  readonly code: 'queue_full' | 'queue_unavailable'
  readonly message: string
  /** Whether the message says it all: it is one of ours. */
  readonly isWhole: boolean
  /** Of SQLite, where it is its failure. */
  readonly errcode: number | undefined
}

/** What came of a call. */
export type Reply = { readonly value: unknown } | { readonly failure: Failure }

/** What the thread is told when it starts. */
export interface HostSettings {
  readonly path: string
  readonly name: string
  readonly knownForMs: number
  /** Number.MAX_SAFE_INTEGER for no bound. */
  readonly maxJobs: number
  readonly busyTimeoutMs: number
}

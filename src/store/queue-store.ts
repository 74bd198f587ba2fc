/** The contract of an engine, as types only: what `createQueue` needs to store and to claim jobs. */

import type { QueueCounts } from './health.ts'
import type {
  ClaimedJob,
  Complete,
  DeadLetter,
  Job,
  JobTransaction,
  LogEntry,
  LogPage,
  Outcome,
  PushOptions,
  QueueUse,
  StoredJob,
} from './queue-types.ts'
import type { PageBounds } from './walk.ts'

/** A value, or a promise of it. Answering without a promise costs no turn of the event loop. */
export type Answer<T> = T | Promise<T>

/**
 * Stores and claims the jobs of one queue. `createQueue` checks every argument, and makes no calls after `close`.
 *
 * A call that fails throws or rejects: with a HooklineError `queue_full` or `queue_unavailable` if the store can say what to do, otherwise
 * with any error, which is reported as `queue_unavailable`. Each call must end: a store bounds its own waiting. `claim`, `finish`,
 * `release` and `renew` are called again after a failure, so repeating them must be safe.
 *
 * @typeParam Claim A claimed job with whatever the store needs to recognise its own claim: a token, an attempt number.
 */
export interface QueueStore<Claim extends ClaimedJob = ClaimedJob> {
  /** Whether the jobs survive the end of the process. */
  readonly isDurable: boolean
  /** How long a claim lasts unless it is renewed, in milliseconds. Default: as long as its process. */
  readonly leaseMs?: number
  /** How often claims are renewed, in milliseconds. Default: a third of `leaseMs`. */
  readonly renewMs?: number
  /**
   * Whether calls take effect in the order in which they are made, before they are answered. If so, a claim that is made right after a push
   * or an outcome gets the jobs that those make due. Default: no; the queue claims such jobs once the push or the outcome is answered.
   */
  readonly isOrdered?: boolean
  /**
   * Names the place of the jobs: every store of this process over the same jobs returns the same text. Default: no other store has the same
   * jobs.
   */
  readonly place?: string
  /**
   * Reserves the jobs for this use, for good. If the engine has already reserved them for the other use, each later call throws or rejects
   * with what `servesOther` returns. Default: only the queue itself knows the use.
   */
  reserve?(use: QueueUse): void
  /** Whether `push` accepts jobs with a group. Default false: it is never called with such jobs. */
  readonly hasGroups?: boolean
  /** Whether `push` can store jobs in a transaction of the caller. Default: it cannot, and is never given a `db`. */
  readonly hasTransactions?: boolean
  /**
   * Stores jobs: all of them or none. Skips ids that wait, are claimed, are dead letters or are in the dedupe window. The ids in one call
   * are all different.
   *
   * @returns The ids that it skipped; undefined if the store does not know them.
   * @param options With a `db`, the jobs must exist if and only if its transaction commits. The store throws a TypeError for a `db` that it
   *   cannot use, and throws errors of the database unchanged. The caller bounds the waiting.
   */
  push(jobs: readonly Job[], options?: PushOptions): Answer<readonly string[] | undefined>
  /**
   * Claims due jobs, at most `limit`, about the oldest first. Jobs that cannot be read become dead letters, so that they do not hold up the
   * others, and are passed to `onUnreadable`.
   */
  claim(limit: number, onUnreadable?: (letter: DeadLetter) => void): Answer<readonly Claim[]>
  /**
   * From now on, claims at most this many jobs per second, together with the other processes that call this. Default: each process limits
   * itself.
   */
  limit?(maxPerSecond: number): void
  /**
   * Stores a retry state while the claim goes on. Does nothing if the claim is no longer current. The outcome of the claim is recorded
   * later.
   */
  save(claim: Claim, retryState: Uint8Array): Answer<void>
  /** Begins a transaction for handlers. Default: the engine offers none. */
  begin?(timeoutMs: number): Promise<JobTransaction<Claim>>
  /** Ends a claim as its handler decided. Does nothing if the claim is no longer current. */
  finish(claim: Claim, outcome: Outcome): Answer<void>
  /** Completes a job and claims at most one due job in the same step. Default: `finish`, and then `claim`. */
  finishAndClaim?(claim: Claim, outcome: Complete): Promise<readonly Claim[]>
  /** Ends claims without an outcome: the jobs are due at once, for any worker. */
  release(claims: readonly Claim[], how: ReleaseOptions): Answer<void>
  /** Extends the leases of claims. Required with `leaseMs`. */
  renew?(claims: readonly Claim[]): Answer<void>
  /** Calls `listener` when another process may have pushed a job. Called once, by `work`. Default: `pollMs` finds such jobs. */
  onChange?(listener: () => void): void
  /**
   * Returns when the next job is due: a time in the past if one is due now; undefined if none waits, or if the store relies on `pollMs` to
   * find jobs that come due later.
   */
  nextDueAt(): Answer<Date | undefined>
  counts(): Answer<QueueCounts>
  /**
   * Lists dead letters in the order that the page asks for, beginning after the dead letter `after` if it still exists. Returns none only
   * if no more follow: a page that reaches `maxBytes` may have fewer than `limit`.
   */
  deadLetters(
    page: PageBounds & { readonly after: string | undefined; readonly newestFirst: boolean },
  ): Answer<readonly DeadLetter[]>
  /**
   * Makes these dead letters wait again. Skips other ids. Returns how many it redrove. Like `drop` and `remove`, it is given at most 500
   * ids, each once.
   */
  redrive(ids: readonly string[]): Answer<number>
  drop(ids: readonly string[]): Answer<number>
  /**
   * Replaces the body and the retry state of dead letters, and nothing else. Skips those that are no longer dead letters. It is given at
   * most 500. Default: the engine cannot replace them.
   */
  rewrite?(letters: readonly DeadLetter[]): Answer<void>
  /**
   * Lists the jobs that wait or are claimed, in any order, in lists of at most 4 MB each unless a single job is larger: all jobs that were
   * stored before the call and still exist. It may also list jobs that were pushed since then, and completed jobs whose bodies are still
   * stored.
   */
  jobs(): AsyncIterable<readonly StoredJob[]> | Iterable<readonly StoredJob[]>
  /**
   * Deletes jobs that {@link QueueStore.jobs} has listed, and forgets their ids. Skips jobs that are claimed or gone. Returns how many it
   * deleted.
   */
  remove(ids: readonly string[]): Answer<number>
  /** The log, to which `finish` appends each job whose outcome has a `log`. Default: the queue has no log. */
  readonly log?: LogStore
  /** The marks. Default: the queue has no marks. */
  readonly marks?: MarkStore
  /**
   * Frees the resources of the store. Returns the jobs that are lost with the process, the oldest first. Closing a queue waits 300 ms for a
   * durable store; after that, nothing may keep the process alive.
   */
  close(): Answer<readonly Job[]>
}

/**
 * The log of a store. `finish` appends to it in the step that completes the job. An engine that cannot do both in one step appends first,
 * so that a job may be in the log twice.
 */
export interface LogStore {
  /** Lists entries in their order; none only if no more follow. Lists an entry only once no earlier one can still appear. */
  list(page: PageBounds & Pick<LogPage, 'since' | 'until' | 'after'>): Answer<readonly LogEntry[]>
  /**
   * Drops the oldest entries, at most `limit`: those that were handled before this time, and more while the bodies of the log exceed
   * `maxBytes`. Returns how many it dropped.
   */
  trim(which: { readonly before: Date; readonly maxBytes: number; readonly limit: number }): Answer<number>
  /** Deletes the entries with these cursors. Returns how many it deleted. */
  remove(cursors: readonly string[]): Answer<number>
  /**
   * Replaces the body and the note of entries, and nothing else. Skips those that are gone. It is given at most 500. Default: the engine
   * cannot replace them.
   */
  rewrite?(entries: readonly LogEntry[]): Answer<void>
}

/** A key that is set until a given time. The text of the key is a digest. */
export interface Mark {
  readonly key: string
  readonly until: Date
}

/** Keeps the marks of a queue, which its processes share. */
export interface MarkStore {
  /**
   * Sets marks, at most 500, each key once. For a key that is already set, the new time replaces the old one. Deletes marks that ended
   * before `endedBefore`.
   */
  set(marks: readonly Mark[], endedBefore: Date): Answer<void>
  /**
   * Lists marks in the order in which they were last set, including those that have ended: at most `limit` of those after `version`. A
   * version is a whole number from 1 up, and grows with each mark that is set. Lists a mark only once no lower version can still appear.
   */
  list(version: number, limit: number): Answer<readonly (Mark & { readonly version: number })[]>
}

/** A checked page of the log. Each engine has its own cursors: a number, or two numbers with a `-` between them. */
export type CheckedLogPage = Parameters<LogStore['list']>[0]

export type CheckedPage = Parameters<QueueStore['deadLetters']>[0]

/** How claims are released. */
export interface ReleaseOptions {
  /** Whether a handler saw the jobs. If none did, the claims do not count. */
  readonly wereHandled: boolean
}

/** The contract of an engine, as types only: the store that `createQueue` needs to keep and claim jobs. */

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

/** A value, or a promise of the value. An answer without a promise is faster, because it needs no turn of the event loop. */
export type Answer<T> = T | Promise<T>

/**
 * Stores and claims the jobs of one queue. `createQueue` checks every argument, and makes no calls after `close`.
 *
 * A call that fails throws or rejects. If the store can say what to do, the error is a HooklineError `queue_full` or `queue_unavailable`;
 * any other error is reported as `queue_unavailable`. Each call must end, so a store limits how long it waits. `claim`, `finish`, `release`
 * and `renew` are called again after a failure, so repeating them must be safe.
 *
 * @typeParam Claim A claimed job, with whatever identifies the claim to the store, such as a token or an attempt number.
 */
export interface QueueStore<Claim extends ClaimedJob = ClaimedJob> {
  /** Whether the jobs survive the end of the process. */
  readonly isDurable: boolean
  /** How long a claim lasts unless it is renewed, in milliseconds. Default: a claim lasts as long as its process. */
  readonly leaseMs?: number
  /** How often claims are renewed, in milliseconds. Default: a third of `leaseMs`. */
  readonly renewMs?: number
  /**
   * Whether calls take effect in the order in which they are made, even before they are answered. If so, a claim that is made right after a
   * push or an outcome gets the jobs that the push or the outcome makes due. Default false: the queue claims such jobs once the push or the
   * outcome is answered.
   */
  readonly isOrdered?: boolean
  /**
   * Identifies the place where the jobs are stored: all stores of this process with the same jobs have the same `place`. Default: no other
   * store has the same jobs.
   */
  readonly place?: string
  /**
   * Reserves the jobs for this use, permanently. If the engine has already reserved the jobs for the other use, each later call throws or
   * rejects with the error that `servesOther` returns. Default: the reservation is not stored, and only this queue object knows it.
   */
  reserve?(use: QueueUse): void
  /** Whether `push` accepts jobs with a group. Default false: it is never called with such jobs. */
  readonly hasGroups?: boolean
  /** Whether `push` can store jobs in a transaction of the caller. Default false: it is never called with a `db`. */
  readonly hasTransactions?: boolean
  /**
   * Stores jobs: all of them or none. Skips a job whose id belongs to a waiting job, a claimed job or a dead letter, or is in the dedupe
   * window. The ids in one call are all different.
   *
   * @returns The ids of the skipped jobs; undefined if the store does not know them.
   * @param options With a `db`, the jobs must exist if and only if its transaction commits. The store throws a TypeError for a `db` that it
   *   cannot use, and throws errors from the database unchanged. The caller limits how long to wait.
   */
  push(jobs: readonly Job[], options?: PushOptions): Answer<readonly string[] | undefined>
  /**
   * Claims due jobs, at most `limit`, about the oldest first. A job that cannot be read becomes a dead letter, so that it does not hold up
   * other jobs, and is passed to `onUnreadable`.
   */
  claim(limit: number, onUnreadable?: (letter: DeadLetter) => void): Answer<readonly Claim[]>
  /**
   * Limits how many jobs are claimed per second from now on, by all processes together that call this method. Default: each process limits
   * itself.
   */
  limit?(maxPerSecond: number): void
  /** Stores a retry state without ending the claim. Does nothing if the claim is no longer current. */
  save(claim: Claim, retryState: Uint8Array): Answer<void>
  /** Begins a transaction for handlers. Default: the engine has no such transactions. */
  begin?(timeoutMs: number): Promise<JobTransaction<Claim>>
  /** Ends a claim as its handler decided. Does nothing if the claim is no longer current. */
  finish(claim: Claim, outcome: Outcome): Answer<void>
  /** Completes a job and claims at most one due job in the same step. Default: the queue calls `finish`, and then `claim`. */
  finishAndClaim?(claim: Claim, outcome: Complete): Promise<readonly Claim[]>
  /** Ends claims without an outcome, so that any worker can claim the jobs at once. */
  release(claims: readonly Claim[], how: ReleaseOptions): Answer<void>
  /** Extends the leases of claims. Required with `leaseMs`. */
  renew?(claims: readonly Claim[]): Answer<void>
  /**
   * Calls `listener` whenever another process may have pushed a job. `work` calls this method once. Default: the queue looks for such jobs
   * every `pollMs`.
   */
  onChange?(listener: () => void): void
  /**
   * Returns the time at which the next job is due: a time in the past if a job is due now; undefined if no job waits, or if the store
   * relies on `pollMs` to find jobs that come due later.
   */
  nextDueAt(): Answer<Date | undefined>
  counts(): Answer<QueueCounts>
  /**
   * Lists dead letters in the order that the page asks for, beginning after the dead letter `after` if it still exists. An empty page means
   * that there are no more dead letters; a page that reaches `maxBytes` may have fewer than `limit`.
   */
  deadLetters(
    page: PageBounds & { readonly after: string | undefined; readonly newestFirst: boolean },
  ): Answer<readonly DeadLetter[]>
  /**
   * Makes the dead letters with these ids wait again. Skips ids that are not dead letters. Returns how many dead letters it redrove. Like
   * `drop` and `remove`, it is called with at most 500 ids, each once.
   */
  redrive(ids: readonly string[]): Answer<number>
  drop(ids: readonly string[]): Answer<number>
  /**
   * Replaces the bodies and the retry states of at most 500 dead letters, and nothing else. Skips jobs that are no longer dead letters.
   * Default: the engine cannot change dead letters.
   */
  rewrite?(letters: readonly DeadLetter[]): Answer<void>
  /**
   * Lists the jobs that wait or are claimed, in any order. Includes each job that was stored before the call and still exists. May also
   * include jobs that were pushed during the call, and completed jobs whose bodies are still stored. Each list has at most 4 MB, unless a
   * single job is larger.
   */
  jobs(): AsyncIterable<readonly StoredJob[]> | Iterable<readonly StoredJob[]>
  /**
   * Deletes jobs that {@link QueueStore.jobs} has listed, and forgets their ids. Skips jobs that are claimed or gone. Returns how many jobs
   * it deleted.
   */
  remove(ids: readonly string[]): Answer<number>
  /** The log, to which `finish` appends each job whose outcome has a `log` field. Default: the queue has no log. */
  readonly log?: LogStore
  /** The marks. Default: the queue has no marks. */
  readonly marks?: MarkStore
  /**
   * Frees the resources of the store. Returns the jobs that will be lost when the process ends, the oldest first. A closing queue waits 300
   * ms for a durable store; after that, the store must not keep the process alive.
   */
  close(): Answer<readonly Job[]>
}

/**
 * The log of a store. `finish` completes a job and appends it to the log in one step. An engine that cannot do both in one step appends
 * first, so a job may be in the log twice.
 */
export interface LogStore {
  /**
   * Lists entries in the order of their cursors. An empty page means that there are no more entries. Lists an entry only once no entry with
   * an earlier cursor can still appear.
   */
  list(page: PageBounds & Pick<LogPage, 'since' | 'until' | 'after'>): Answer<readonly LogEntry[]>
  /**
   * Drops the oldest entries, at most `limit`: first all entries that were handled before the time `before`, and then more while the bodies
   * of the log exceed `maxBytes`. Returns how many entries it dropped.
   */
  trim(which: { readonly before: Date; readonly maxBytes: number; readonly limit: number }): Answer<number>
  /** Deletes the entries with these cursors. Returns how many entries it deleted. */
  remove(cursors: readonly string[]): Answer<number>
  /**
   * Replaces the bodies and the notes of at most 500 entries, and nothing else. Skips entries that are gone. Default: the engine cannot
   * change entries.
   */
  rewrite?(entries: readonly LogEntry[]): Answer<void>
}

/** A key that is set until a given time. A store gets only a digest of the key. */
export interface Mark {
  readonly key: string
  readonly until: Date
}

/** Keeps the marks of a queue, which all processes of the queue share. */
export interface MarkStore {
  /**
   * Sets at most 500 marks, with each key once. If a key is already set, the new time replaces the old one. Also deletes marks that ended
   * before `endedBefore`.
   */
  set(marks: readonly Mark[], endedBefore: Date): Answer<void>
  /**
   * Lists at most `limit` marks with versions above `version`, in the order in which they were last set. Includes marks that have ended.
   * Each mark that is set gets a higher version than all earlier ones, a whole number from 1 up. Lists a mark only once no mark with a
   * lower version can still appear.
   */
  list(version: number, limit: number): Answer<readonly (Mark & { readonly version: number })[]>
}

/**
 * Which page of the log to return, after its checks. Each engine has its own form of cursor: a number, or two numbers with a `-` between
 * them.
 */
export type CheckedLogPage = Parameters<LogStore['list']>[0]

export type CheckedPage = Parameters<QueueStore['deadLetters']>[0]

/** How claims are released. */
export interface ReleaseOptions {
  /** Whether a handler saw the jobs. If not, the claims do not count. */
  readonly wereHandled: boolean
}

/** The types of a store, which an engine supplies and `createQueue` turns into a queue. */

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

/** A value, or a promise of the value. Returning the value itself is faster, because the queue does not have to wait for a promise. */
export type Answer<T> = T | Promise<T>

/**
 * Stores and claims the jobs of one queue. The queue that `createQueue` creates checks every argument, and makes no calls after `close`.
 *
 * A call that fails throws or rejects. If the store can say what to do, the error is a HooklineError `queue_full` or `queue_unavailable`;
 * any other error is reported as `queue_unavailable`. Each call must end, so a store must limit how long a call waits. The queue repeats
 * `claim`, `finish`, `release` and `renew` after a failure, so repeating them must be safe.
 *
 * @typeParam Claim A claimed job. It has the fields by which the store identifies the claim, for example a token or an attempt number.
 */
export interface QueueStore<Claim extends ClaimedJob = ClaimedJob> {
  /** Whether the jobs survive the end of the process. */
  readonly isDurable: boolean
  /** How long a claim lasts unless it is renewed, in milliseconds. Default: a claim lasts as long as its process. */
  readonly leaseMs?: number
  /** How often claims are renewed, in milliseconds. Default: a third of `leaseMs`. */
  readonly renewMs?: number
  /**
   * Whether calls take effect in the order in which they are made, even before they are answered. If so, a claim right after a push or an
   * outcome gets the jobs that the push or the outcome makes due. Default false: the queue claims such jobs once the push or the outcome
   * has been answered.
   */
  readonly isOrdered?: boolean
  /**
   * Identifies where the jobs are stored. All stores of this process with the same jobs have the same `place`. Default: the queue assumes
   * that no other store has the same jobs.
   */
  readonly place?: string
  /**
   * Reserves the stored jobs for this use, permanently. If they are already reserved for the other use, this call or each
   * later call fails with the error that `servesOther` creates. Default: the use is not stored, and only this queue
   * object knows it.
   */
  reserve?(use: QueueUse): void
  /** Whether `push` accepts jobs with a group. Default false: `push` is never called with such jobs. */
  readonly hasGroups?: boolean
  /** Whether `push` can store jobs in a transaction of the caller. Default false: `push` is never called with a `db`. */
  readonly hasTransactions?: boolean
  /**
   * Stores jobs. If the call fails, none of them should be stored, unless the engine cannot ensure this. Skips a job whose id belongs to a
   * waiting job, a claimed job or a dead letter, or is in the dedupe window. The ids in one call are all different.
   *
   * @param options With a `db`, the jobs must exist if and only if its transaction commits. The store throws a TypeError for a `db` that it
   *   cannot use, and passes on errors from the database unchanged. The store need not limit how long such a push waits, because the caller
   *   does.
   * @returns The ids of the skipped jobs; undefined if the store does not know them.
   */
  push(jobs: readonly Job[], options?: PushOptions): Answer<readonly string[] | undefined>
  /**
   * Claims due jobs, at most `limit`, approximately the oldest first. A job that cannot be read becomes a dead letter, so that it does not
   * hold up other jobs, and is passed to `onUnreadable`.
   */
  claim(limit: number, onUnreadable?: (letter: DeadLetter) => void): Answer<readonly Claim[]>
  /**
   * Limits how many jobs are claimed per second from now on, by all processes that call this method together. Default: each process limits
   * only its own claims.
   */
  limit?(maxPerSecond: number): void
  /** Stores a retry state without ending the claim. Does nothing if the claim has ended. */
  save(claim: Claim, retryState: Uint8Array): Answer<void>
  /** Begins a transaction that handlers can use. Default: the engine has no such transactions. */
  begin?(timeoutMs: number): Promise<JobTransaction<Claim>>
  /** Ends a claim with the outcome that its handler decided. Does nothing if the claim has ended. */
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
   * Returns the time at which the next job is due, which is in the past if a job is due now. Returns undefined if no job waits, or if the
   * store relies on `pollMs` to find jobs that come due later.
   */
  nextDueAt(): Answer<Date | undefined>
  counts(): Answer<QueueCounts>
  /**
   * Lists dead letters in the order that the page asks for, beginning after the dead letter `after` if that dead letter still exists. An
   * empty page means that there are no more dead letters. A page that reaches `maxBytes` may have fewer than `limit`.
   */
  deadLetters(
    page: PageBounds & { readonly after: string | undefined; readonly newestFirst: boolean },
  ): Answer<readonly DeadLetter[]>
  /**
   * Makes the dead letters with these ids wait again. Skips ids that no dead letter has. Returns how many dead letters it redrove.
   * `redrive`, `drop` and `remove` are called with at most 500 ids, all different.
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
   * include jobs that were pushed during the call, and completed jobs whose bodies are still stored. Unless the bodies are already in
   * memory, each list has at most 4 MB, or a single job that is larger.
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
   * Frees the resources of the store. Returns the jobs that will be lost when the process ends, the oldest first. A closing queue waits
   * 300 ms for a durable store; after that, the store must not keep the process alive.
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
   * Sets at most 500 marks, whose keys are all different. If a key is already set, the new time replaces the old one. Also deletes marks
   * that ended before `endedBefore`.
   */
  set(marks: readonly Mark[], endedBefore: Date): Answer<void>
  /**
   * Lists at most `limit` marks with versions above `version`, in the order in which they were last set. Includes marks that have ended. A
   * version is a whole number from 1, and each mark that is set gets a higher version than all earlier ones. Lists a mark only once no mark
   * with a lower version can still appear.
   */
  list(version: number, limit: number): Answer<readonly (Mark & { readonly version: number })[]>
}

/**
 * The options of a page of the log, after they were checked. The form of a cursor depends on the engine: a number, or two numbers with a
 * `-` between them.
 */
export type CheckedLogPage = Parameters<LogStore['list']>[0]

export type CheckedPage = Parameters<QueueStore['deadLetters']>[0]

/** The options of {@link QueueStore.release}. */
export interface ReleaseOptions {
  /** Whether a handler saw the jobs. If not, the claims do not count. */
  readonly wereHandled: boolean
}

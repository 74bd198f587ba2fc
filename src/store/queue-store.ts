/** The contract of an engine, types only: what `createQueue` needs to store and to claim jobs. */

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

/** A value, or a promise of it. A store that answers without a promise costs no turn of the event loop. */
export type Answer<T> = T | Promise<T>

/**
 * Stores and claims the jobs of one queue. `createQueue` checks every argument, and calls nothing after `close`.
 *
 * A call that fails throws or rejects: with a HooklineError `queue_full` or `queue_unavailable` where the store can say what
 * to do, else with any error, which is reported as `queue_unavailable`. Each call must end: a store bounds its own waiting.
 * `claim`, `finish`, `release` and `renew` are called again after they failed, so repeating one must be safe.
 *
 * @typeParam Claim A claimed job with whatever the store needs to recognise its own claim: a token, an attempt number.
 */
export interface QueueStore<Claim extends ClaimedJob = ClaimedJob> {
  /** Whether the jobs are still there when the process has ended. */
  readonly isDurable: boolean
  /** How long a claim lasts that is not renewed, in milliseconds. Default: as long as its process. */
  readonly leaseMs?: number
  /** How often claims are renewed, in milliseconds. Default: every third of `leaseMs`. */
  readonly renewMs?: number
  /**
   * Whether calls take effect in the order in which they are made, before they are answered. Then a claim that is made right after a push
   * or an outcome gets what that makes due. Default: no; the queue claims such jobs once the push or the outcome is answered.
   */
  readonly isOrdered?: boolean
  /** Names the place of the jobs: the same text for each store of this process over the same jobs. Default: no other store has them. */
  readonly place?: string
  /**
   * Keeps the jobs for this use, for good. From then on each call throws or rejects, with what `servesOther` returns, where
   * the engine keeps them for another one. Default: a use is known to the queue only.
   */
  reserve?(use: QueueUse): void
  /** Whether `push` accepts jobs with a group. Default: it gets none. */
  readonly hasGroups?: boolean
  /** Whether `push` can store in a transaction of the caller's. Default: it cannot, and is never given a `db`. */
  readonly hasTransactions?: boolean
  /**
   * Stores jobs, all or none. Skips ids that wait, are claimed, are dead letters or are in the dedupe window. The ids of one call differ.
   *
   * @returns The ids that it skipped; undefined when it does not know.
   * @param options With a `db`, the jobs must be there exactly when its transaction commits. The store throws a TypeError for a
   *   `db` that it cannot use, and what the database throws, as it is. Its caller bounds the waiting.
   */
  push(jobs: readonly Job[], options?: PushOptions): Answer<readonly string[] | undefined>
  /**
   * Claims due jobs, at most `limit`, about the oldest first. Gives `onUnreadable` each job that it cannot read and has made a
   * dead letter, so that it does not stop those that it can.
   */
  claim(limit: number, onUnreadable?: (letter: DeadLetter) => void): Answer<readonly Claim[]>
  /** From now on, claims no more jobs a second than this, together with the other processes that do so. Default: each process limits itself. */
  limit?(maxPerSecond: number): void
  /**
   * Stores a retry state with a claim that goes on. Does nothing when the claim is not current any more. The outcome of the claim is
   * recorded afterwards.
   */
  save(claim: Claim, retryState: Uint8Array): Answer<void>
  /** Begins a transaction for handlers. Default: none can be begun. */
  begin?(timeoutMs: number): Promise<JobTransaction<Claim>>
  /** Ends a claim as its handler decided. Does nothing when the claim is not current any more. */
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
   * When the next job is due: a time in the past when one is due now, undefined when none waits or when the store relies on
   * `pollMs` to find jobs that come due later.
   */
  nextDueAt(): Answer<Date | undefined>
  counts(): Answer<QueueCounts>
  /**
   * Lists dead letters in the order that the page asks for; those after the id `after` when it is one of them. Returns none only when no
   * other follows: a page that is full of bytes may have fewer than `limit`.
   */
  deadLetters(
    page: PageBounds & { readonly after: string | undefined; readonly newestFirst: boolean },
  ): Answer<readonly DeadLetter[]>
  /** Makes these dead letters wait again. Skips other ids. Returns how many. Gets at most 500 ids, each once, as `drop` and `remove` do. */
  redrive(ids: readonly string[]): Answer<number>
  drop(ids: readonly string[]): Answer<number>
  /**
   * Replaces the body and the retry state of dead letters, and nothing else. Skips those that are dead letters no more. Gets at most 500.
   * Default: it cannot.
   */
  rewrite?(letters: readonly DeadLetter[]): Answer<void>
  /**
   * Lists the jobs that wait or are claimed, in any order, some at a time, of at most 4 MB together unless it is one: all that were
   * stored before the call and are still there. May list others, too: those that were pushed since, and complete ones whose bodies are still stored.
   */
  jobs(): AsyncIterable<readonly StoredJob[]> | Iterable<readonly StoredJob[]>
  /** Deletes what {@link QueueStore.jobs} listed, and forgets the ids. Skips claimed jobs, and those that are gone. Returns how many. */
  remove(ids: readonly string[]): Answer<number>
  /** The log, to which `finish` appends the jobs whose outcome has a `log`. Default: the queue has no log. */
  readonly log?: LogStore
  /** Default: the queue has no marks. */
  readonly marks?: MarkStore
  /**
   * Frees what it holds. Returns the jobs that are lost with the process, the oldest first. Closing a queue waits 300 ms for a
   * durable store; nothing that is left then may keep the process alive.
   */
  close(): Answer<readonly Job[]>
}

/**
 * The log of a store. `finish` appends to it in the step that completes the job; an engine that cannot appends first, and may then
 * have a job twice.
 */
export interface LogStore {
  /** Lists entries in their sequence; none only when no other follows. Lists an entry only when none before it can still appear. */
  list(page: PageBounds & Pick<LogPage, 'since' | 'until' | 'after'>): Answer<readonly LogEntry[]>
  /**
   * Drops the oldest entries, at most `limit`: those that were handled before this time, and more while the bodies of the log take more than
   * `maxBytes`. Returns how many.
   */
  trim(which: { readonly before: Date; readonly maxBytes: number; readonly limit: number }): Answer<number>
  /** Deletes the entries with these cursors. Returns how many there were. */
  remove(cursors: readonly string[]): Answer<number>
  /** Replaces the body and the note of entries, and nothing else. Skips those that are gone. Gets at most 500. Default: it cannot. */
  rewrite?(entries: readonly LogEntry[]): Answer<void>
}

/** A key that is set until a time. Its text is a digest. */
export interface Mark {
  readonly key: string
  readonly until: Date
}

/** Keeps the marks of a queue, which its processes share. */
export interface MarkStore {
  /** Sets marks, at most 500, each key once; a key that is set already ends at the new time. Deletes those that ended before `endedBefore`. */
  set(marks: readonly Mark[], endedBefore: Date): Answer<void>
  /**
   * Lists the marks in the order in which they were set last, those that have ended too: at most `limit` of those after `version`, a whole
   * number from 1 on that grows with each set. Lists a mark only when no lower version can still appear.
   */
  list(version: number, limit: number): Answer<readonly (Mark & { readonly version: number })[]>
}

/** The cursors of an engine are its own: digits, and those of two numbers with a `-` between. */
export type CheckedLogPage = Parameters<LogStore['list']>[0]

export type CheckedPage = Parameters<QueueStore['deadLetters']>[0]

/** How claims are released. */
export interface ReleaseOptions {
  /** Whether a handler saw the jobs. When none did, the claims do not count. */
  readonly wereHandled: boolean
}

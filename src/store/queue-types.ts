/** The contract of a queue, as types only: the caller decides when a job runs, and the queue makes sure that no job is lost. */

import type { QueueCounts } from './health.ts'

/** What a queue is used for: the part of Hookline that pushes its jobs and handles them. */
export type QueueUse = 'inbox' | 'destination'

/** One unit of durable work, as it is pushed. */
export interface Job {
  /**
   * A lowercase UUID. Pushing a job whose id is already waiting, claimed or a dead letter changes nothing; nor does pushing one within the
   * dedupe window of the engine, which is 24 hours by default, counted from the push or from the completion.
   */
  readonly id: string
  readonly body: Uint8Array
  /** The earliest time to handle the job. Default: at once. */
  readonly notBefore?: Date
  /**
   * The name of the job's group. Workers handle the jobs of a group one at a time, in the order in which they were pushed: a job that is to
   * be retried holds up the others until it is complete or a dead letter. A queue without groups refuses a job that has one. Default: no
   * group.
   */
  readonly group?: string | undefined
}

/** How to push jobs. */
export interface PushOptions {
  /**
   * A transaction of yours in the queue's database: the jobs exist once it commits, and never if it is rolled back. `pgBossQueue` takes a
   * client of pg after `BEGIN`, or an object with `executeSql(text, values)` that resolves to `{ rows }`; `sqliteQueue` takes a
   * `DatabaseSync` of node:sqlite on its file after `BEGIN IMMEDIATE`; the other engines of Hookline take none. An error of the database
   * rejects the push unchanged: roll back then.
   */
  readonly db?: object
}

/** A job that a worker holds. */
export interface ClaimedJob {
  readonly id: string
  readonly body: Uint8Array
  /**
   * How many times the job was claimed, including this time. A claim that ended because its process died or its lease expired counts, too.
   */
  readonly claimCount: number
  /** When the job was first claimed. */
  readonly firstAt: Date
  /**
   * When the job came due; for one with a `notBefore`, this may be the time of the push. Set at the first claim; later claims may leave it
   * out.
   */
  readonly dueAt?: Date
  /** The state that the previous outcome stored; undefined when it stored none. */
  readonly retryState: Uint8Array | undefined
  /**
   * How long the event loop of this process was blocked when an earlier claim of this job lapsed here, in milliseconds; undefined if none
   * did. It is set by the queue, not by its store.
   */
  readonly blockedMs?: number
}

/** The job is complete. With `log`, the job is appended to the queue's log, with these bytes as its note. */
export interface Complete {
  readonly complete: true
  readonly log?: Uint8Array
}

/** What a handler decides about a job. */
export type Outcome =
  | Complete
  /** Handle the job again at this time. A time in the past means now. The other jobs of its group wait for it. */
  | { readonly retryAt: Date; readonly retryState?: Uint8Array }
  /** Make the job a dead letter, for this reason. */
  | { readonly deadLetter: string; readonly retryState?: Uint8Array }

/**
 * Handles a job. The signal aborts when the queue is closed and the grace period is over. If the promise rejects, or resolves to anything
 * but an outcome, the job is retried with the same retry state: after 1 second the first time, doubling up to a minute.
 */
export type HandleJob = (
  job: ClaimedJob,
  signal: AbortSignal,
  save?: SaveState,
  begin?: BeginTransaction,
) => Promise<Outcome>

/**
 * Begins a transaction that ends automatically after `timeoutMs`. Only a queue with `isTransactional` passes this function to its handler.
 */
export type BeginTransaction = (timeoutMs: number) => Promise<JobTransaction>

/** A job that a transaction completes. */
export interface Completion<Claim extends ClaimedJob = ClaimedJob> {
  /** The job as its handler got it. */
  readonly claim: Claim
  /** The note of the job in the log. */
  readonly log: Uint8Array | undefined
}

/** A transaction in the queue's database, in which jobs can be completed, too. */
export interface JobTransaction<Claim extends ClaimedJob = ClaimedJob> {
  /** The connection, between BEGIN and COMMIT: a client of `pg`. */
  readonly db: object
  /**
   * Completes jobs, appends those with a note to the log, and commits everything. Afterwards, the outcomes of their handlers change
   * nothing.
   *
   * @throws HooklineError (as a rejection) `lease_lapsed` when a claim is over, `queue_unavailable` when PostgreSQL fails. In both cases,
   *   nothing was changed, unless only the answer to the commit was lost.
   */
  commit(completions: readonly Completion<Claim>[]): Promise<void>
  /** Undoes everything, even while a statement is running. Never rejects. */
  rollback(): Promise<void>
}

/**
 * Stores a retry state while the job is being handled: if this claim ends without an outcome because the process dies, the next claim gets
 * the state. Resolves when the state is stored, or when storing it has failed, which the queue reports. An outcome replaces the state.
 */
export type SaveState = (retryState: Uint8Array) => Promise<void>

/** How many more jobs a handler accepts, within its concurrency. The queue asks before each claim. */
export interface Room {
  /** Returns the maximum number of jobs to claim now. */
  count(): number
  /** Returns when there will be room again even if no job ends; undefined when a job has to end first. */
  nextAt(): Date | undefined
}

/** A job that is not retried until it is redriven. */
export interface DeadLetter {
  readonly id: string
  readonly body: Uint8Array
  readonly reason: string
  readonly retryState: Uint8Array | undefined
  /** When it became a dead letter. */
  readonly failedAt: Date
}

/** Which page of the dead letters to return. */
export interface DeadLetterPage {
  /** The id of the last dead letter of the previous page. Default, or when it is no longer a dead letter: the first page. */
  readonly after?: string
  /** The maximum number to return. Default 100. */
  readonly limit?: number
  /**
   * The maximum total size of their bodies, in bytes: the page ends before it exceeds this, but has at least one dead letter. Default: any
   * size.
   */
  readonly maxBytes?: number
  /** Whether to list the newest first. Default: the oldest first. */
  readonly newestFirst?: boolean
}

/** Which dead letters to drop: those that match every given condition. Give at least one. */
export interface DeadLetterFilter<Reason extends string = string> {
  /** Matches jobs that became dead letters before this time. */
  readonly olderThan?: Date
  /** Matches dead letters with this reason. */
  readonly reason?: Reason
}

/** A filter that can also select dead letters by what is stored. */
export interface StoredDeadLetterFilter extends DeadLetterFilter {
  /** Matches dead letters for which this function returns true. Must not throw. */
  readonly matches?: (letter: DeadLetter) => boolean
}

/** A job or a dead letter, as it is stored. */
export type StoredJob = Pick<Job, 'id' | 'body'>

/** The bytes that are stored for a job. */
export interface StoredBytes {
  readonly id: string
  readonly body?: Uint8Array
  readonly retryState?: Uint8Array | undefined
  readonly note?: Uint8Array
}

/** Returns the bytes to store in place of the given ones: the same array when nothing changes. */
export type ChangeBytes = (kind: 'body' | 'retryState' | 'note', id: string, bytes: Uint8Array) => Uint8Array

/** The result of {@link Queue.forget}. */
export interface Forgotten {
  /** How many jobs and dead letters were deleted. */
  readonly deleted: number
  /** How many other matching jobs were claimed, and so were left to their handlers. If they are retried, another call deletes them. */
  readonly active: number
}

/** A completed job in the log of a queue. */
export interface LogEntry extends StoredJob {
  /** The note of its outcome: the bytes of `log`. */
  readonly note: Uint8Array
  /** When it became complete. */
  readonly handledAt: Date
  /** Its position in the log, for `after`. */
  readonly cursor: string
}

/** Which page of the log to return. */
export interface LogPage {
  /** Selects the entries that were handled at this time or later. Default: all. */
  readonly since?: Date | undefined
  /** Selects the entries that were handled before this time. Default: all. */
  readonly until?: Date | undefined
  /** The cursor of the last entry of the previous page. That entry may be gone by now. */
  readonly after?: string | undefined
  /** The maximum number to return. Default 100. */
  readonly limit?: number
  /** The maximum total size of their bodies, in bytes, as in {@link DeadLetterPage}. Default: any size. */
  readonly maxBytes?: number
}

/** How long the entries of a log are kept. */
export interface HistoryOptions {
  /** How long messages stay in the history, in milliseconds from when they were handled. Older ones are dropped once a minute. */
  readonly maxAgeMs: number
  /**
   * The maximum total size of the bodies, in bytes, for all processes together: beyond it, the oldest messages are dropped. Default: as
   * much as there is room for.
   */
  readonly maxBytes?: number
}

/** The log of a queue: its completed jobs, for as long as they are kept. */
export interface QueueLog {
  /**
   * Lists entries in the order in which they were appended; none only when no more follow. An entry that is appended later has a later
   * cursor.
   */
  list(page?: LogPage): Promise<readonly LogEntry[]>
}

/** The marks of a queue: keys that are set until a given time, for all of its processes. The engine stores only digests of the keys. */
export interface QueueMarks {
  /**
   * Sets keys until a time, which replaces any earlier one: in this process at once, and in other processes with a handler within 2
   * seconds. A time in the past unsets the keys.
   */
  set(keys: readonly string[], until: Date): Promise<void>
  /**
   * Returns whether a key is set, as far as this process knows. The process reads changes every second while it has a handler, and in
   * `counts()`.
   */
  has(key: string): boolean
  /** How many keys are set, as far as this process knows. */
  readonly size: number
}

/** How to handle jobs. */
export interface WorkOptions {
  /** The maximum number of jobs to handle at a time. */
  readonly concurrency: number
  /** Receives each job that the queue itself makes a dead letter because the job cannot be read. Must not throw. */
  readonly onUnreadable?: (letter: DeadLetter) => void
  /** Limits how many jobs are claimed. Default: only `concurrency` limits them. */
  readonly room?: Room
  /**
   * The maximum number of jobs that all processes of the queue together may claim per second, for an engine that can limit this; others
   * ignore it. `room` applies the same limit within each process. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * Whether a job must run alone in this process, because it may end the process. While other jobs run, its claim is released without being
   * counted. Default: no job must.
   */
  readonly runsAlone?: (job: ClaimedJob) => boolean
  /** How long the entries of the log are kept. Default: no limit. */
  readonly history?: HistoryOptions
}

/** How to close a queue. */
export interface CloseOptions {
  /** How long running jobs may still take, in milliseconds. Default 10 000. */
  readonly graceMs?: number
}

/**
 * Keeps jobs until they are complete.
 *
 * Every engine promises this, and nothing more: each job is handled at least once, about the oldest first; a retry is handled with its
 * state, and not before its time; ids are known during the dedupe window; dead letters can be listed, redriven and dropped.
 *
 * A wrong argument is a TypeError, and so is `reserve`, `work` or a push with `db` on an observer. After {@link close}, every call except
 * `close` and `drain` rejects with `shutting_down`. A call that fails in the engine, or that the engine does not answer in time, rejects
 * with `queue_unavailable`.
 */
export interface Queue {
  /**
   * Reserves the queue for the inbox or the destination that it was given to, which calls this first. An engine that several processes
   * share stores the use with the jobs: if they are reserved for the other use, each call rejects with `queue_unavailable`. A queue that
   * you use directly, without this call, takes any jobs.
   *
   * @throws TypeError when this queue is reserved for the other use, or when another destination of this process uses the same jobs.
   */
  reserve?(use: QueueUse): void
  /**
   * How long a claim lasts unless its process renews it, in milliseconds. A job is claimed again when its process died, or when it blocked
   * its event loop or could not reach the engine for longer than this. Undefined when a claim lasts as long as its process.
   */
  readonly leaseMs?: number | undefined
  /** Whether the jobs survive the end of the process. */
  readonly isDurable?: boolean
  /**
   * Adds jobs, all of them or none. Resolves when they are stored as safely as the engine allows, or are part of the transaction: to the
   * ids that the queue already had, whose push changed nothing; to undefined if the engine does not report them.
   *
   * @throws HooklineError (as a rejection) `queue_full`; `queue_unavailable`, after which the jobs may have been stored nonetheless.
   */
  push(jobs: readonly Job[], options?: PushOptions): Promise<readonly string[] | undefined>
  /**
   * Starts claiming due jobs, at most `concurrency` at a time, about the oldest first. While the engine is unreachable, nothing is claimed;
   * the queue retries automatically, and then records the outcomes that it still holds.
   *
   * @returns A function that makes the queue ask `room` again.
   * @throws TypeError when the queue already has a handler, or is closed.
   */
  work(handle: HandleJob, options: WorkOptions): () => void
  /**
   * Stops claiming jobs until {@link resume} is called. Jobs that are already claimed go on. Resolves when this process has none left and
   * their outcomes are recorded, or when `resume` or `close` ends the pause.
   */
  pause(): Promise<void>
  resume(): void
  /**
   * Waits for the queue in tests. For the queue of an inbox or a destination, it resolves when every message is complete or a dead letter,
   * including those that are retried. It waits by the clock of the queue: with a manual clock, advance that clock. For a queue with your
   * own worker, it resolves when no job is due and none is claimed in this process, because other jobs may be due much later. In both
   * cases, it also resolves when the queue is closed.
   *
   * @throws TypeError (as a rejection) when the queue belongs to a receiver that was not started.
   */
  drain(): Promise<void>
  counts(): Promise<QueueCounts>
  /** Lists the dead letters, the oldest first unless the page says otherwise. */
  deadLetters(page?: DeadLetterPage): Promise<readonly DeadLetter[]>
  /**
   * Makes dead letters wait again: their claim count and first time start anew, but their retry state is kept. Skips ids that are not dead
   * letters. Returns how many it redrove.
   *
   * @throws HooklineError (as a rejection) `queue_full`: some may wait again already, because 500 are redriven at a time.
   */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Deletes dead letters, and forgets their ids. Returns how many it deleted. */
  drop(which: readonly string[] | 'all' | StoredDeadLetterFilter): Promise<number>
  /** The log of the queue. Undefined for an engine that keeps none. */
  readonly log?: QueueLog
  /** The marks of the queue. Undefined for an engine that keeps none. */
  readonly marks?: QueueMarks
  /** Whether the queue accepts jobs with a `group`. Default false. */
  readonly hasGroups?: boolean
  /** Whether its handler can complete a job in a transaction: see {@link BeginTransaction}. Default false. */
  readonly isTransactional?: boolean
  /**
   * Deletes every waiting job, every entry of the log and every dead letter whose id or body matches, and forgets the ids of the jobs: to
   * erase a person's data. Reads all of them. A claimed job is left to its handler, and counted as `active`.
   *
   * @param matches Must not throw.
   */
  forget(matches: (job: StoredJob) => boolean): Promise<Forgotten>
  /**
   * Changes the bytes of dead letters and of the log in place. Jobs that wait or are claimed stay as they are, and so does a log that the
   * engine cannot change. Undefined for an engine that can change neither. Returns how many it changed.
   *
   * @param change Must not throw.
   */
  readonly rewrite?: (change: ChangeBytes) => Promise<number>
  /**
   * Stops claiming jobs, and gives running jobs the grace period to end; a queue whose jobs end with the process also handles the jobs that
   * are due meanwhile. Afterwards, the signals abort and later outcomes change nothing: a durable queue releases those jobs for other
   * workers. Calls in progress get the grace period, too. Resolves to the jobs that would be lost with this process, the oldest first; a
   * durable queue loses none. Takes at most a second longer than the grace period. Calling `close` again waits for the same end.
   */
  close(options?: CloseOptions): Promise<readonly Job[]>
}

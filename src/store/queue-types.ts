/** The contract of a queue, as types only: the caller decides when a job runs, and the queue ensures that no job is lost. */

import type { QueueCounts } from './health.ts'

/** The purpose of a queue: the part of Hookline that pushes its jobs and handles them. */
export type QueueUse = 'inbox' | 'destination'

/** A unit of durable work, as it is pushed. */
export interface Job {
  /**
   * A lowercase UUID. Pushing a job changes nothing if a job with the same id waits, is claimed or is a dead letter, or if the id is in the
   * dedupe window of the engine. By default, the window lasts 24 hours from the push or from the completion, depending on the engine.
   */
  readonly id: string
  readonly body: Uint8Array
  /** The earliest time to handle the job. Default: at once. */
  readonly notBefore?: Date
  /**
   * The name of the job's group. Workers handle the jobs of a group one at a time, in the order in which they were pushed. A job that is to
   * be retried holds up the other jobs of the group until it is complete or a dead letter. A queue whose `hasGroups` is false refuses a job
   * with a group. Default: no group.
   */
  readonly group?: string | undefined
}

/** How to push jobs. */
export interface PushOptions {
  /**
   * A transaction of yours in the queue's database: the jobs exist once the transaction commits, and never if it is rolled back.
   * `pgBossQueue` takes a `pg` client after `BEGIN`, or an object with `executeSql(text, values)` that resolves to `{ rows }`;
   * `sqliteQueue` takes a node:sqlite `DatabaseSync` on the file of the queue after `BEGIN IMMEDIATE`; the other engines of Hookline accept
   * no `db`. An error from the database rejects the push unchanged: then roll back.
   */
  readonly db?: object
}

/** A job that a worker holds. */
export interface ClaimedJob {
  readonly id: string
  readonly body: Uint8Array
  /**
   * How many times the job has been claimed, including this time. A claim that ended because its process died or its lease expired also
   * counts.
   */
  readonly claimCount: number
  /** When the job was first claimed. */
  readonly firstAt: Date
  /**
   * When the job came due; for a job with a `notBefore`, this may be the time of the push. Present at the first claim; may be undefined at
   * later claims.
   */
  readonly dueAt?: Date
  /** The retry state that was stored last; undefined when none was stored. */
  readonly retryState: Uint8Array | undefined
  /**
   * How long the event loop was blocked when this process let an earlier claim of this job lapse, in milliseconds; undefined if none
   * lapsed. Set by the queue, not by its store.
   */
  readonly blockedMs?: number
}

/** The outcome of a job that is complete. With `log`, the job is appended to the log of the queue, with these bytes as its note. */
export interface Complete {
  readonly complete: true
  readonly log?: Uint8Array
}

/** The decision of a handler about a job. */
export type Outcome =
  | Complete
  /** Handle the job again at this time. A time in the past means now. The other jobs of the group wait behind this job. */
  | { readonly retryAt: Date; readonly retryState?: Uint8Array }
  /** Make the job a dead letter, for this reason. */
  | { readonly deadLetter: string; readonly retryState?: Uint8Array }

/**
 * Handles a job. The signal aborts when the grace period of a closing queue is over. If the promise rejects, or resolves to anything but an
 * outcome, the job is retried with the same retry state. The first retry is after 1 second; the delay doubles with each further retry, up
 * to a minute.
 */
export type HandleJob = (
  job: ClaimedJob,
  signal: AbortSignal,
  save?: SaveState,
  begin?: BeginTransaction,
) => Promise<Outcome>

/**
 * Begins a transaction, which is rolled back automatically after `timeoutMs`. Only a queue with `isTransactional` passes this function to
 * its handler.
 */
export type BeginTransaction = (timeoutMs: number) => Promise<JobTransaction>

/** A job that a transaction completes. */
export interface Completion<Claim extends ClaimedJob = ClaimedJob> {
  /** The job as its handler got it. */
  readonly claim: Claim
  /** The note of the job in the log; undefined if the job is not appended to the log. */
  readonly log: Uint8Array | undefined
}

/** A transaction in the database of the queue, which can also complete jobs. */
export interface JobTransaction<Claim extends ClaimedJob = ClaimedJob> {
  /** The connection on which the transaction runs: a `pg` client. */
  readonly db: object
  /**
   * Completes jobs, appends jobs with a note to the log, and commits everything. Afterwards, the outcomes that the handlers of these jobs
   * return change nothing.
   *
   * @throws HooklineError (as a rejection) `lease_lapsed` when a claim is over, `queue_unavailable` when PostgreSQL fails. In both cases
   *   nothing was changed, unless the commit succeeded and only the answer to it was lost.
   */
  commit(completions: readonly Completion<Claim>[]): Promise<void>
  /** Rolls back the transaction, even while a statement is running. Never rejects. */
  rollback(): Promise<void>
}

/**
 * Stores a retry state while the job is being handled. If this claim ends without an outcome because the process dies, the next claim gets
 * the state. An outcome replaces the state. Resolves when the state is stored or could not be stored; the queue reports a failure.
 */
export type SaveState = (retryState: Uint8Array) => Promise<void>

/** Limits how many more jobs a handler accepts, within its concurrency. The queue asks before each claim. */
export interface Room {
  /** Returns the maximum number of jobs to claim now. */
  count(): number
  /** Returns the time at which there will be room again even if no job ends; undefined if a job has to end first. */
  nextAt(): Date | undefined
}

/** A job that is not retried until it is redriven. */
export interface DeadLetter {
  readonly id: string
  readonly body: Uint8Array
  readonly reason: string
  readonly retryState: Uint8Array | undefined
  /** When the job became a dead letter. */
  readonly failedAt: Date
}

/** Which page of the dead letters to return. */
export interface DeadLetterPage {
  /**
   * The id of the last dead letter of the previous page. If it is no longer a dead letter, the first page is returned. Default: the first
   * page.
   */
  readonly after?: string
  /** The maximum number to return. Default 100. */
  readonly limit?: number
  /**
   * The maximum total size of the bodies of a page, in bytes. A page has at least one dead letter, whatever its size. Default: no maximum.
   */
  readonly maxBytes?: number
  /** Whether to list the newest first. Default false: the oldest come first. */
  readonly newestFirst?: boolean
}

/** Selects the dead letters to drop: those that match every given condition. At least one condition is required. */
export interface DeadLetterFilter<Reason extends string = string> {
  /** Matches jobs that became dead letters before this time. */
  readonly olderThan?: Date
  /** Matches dead letters with this reason. */
  readonly reason?: Reason
}

/** A filter that can also select dead letters by their stored bytes. */
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

/** Returns the bytes to store in place of `bytes`; the same array if nothing changes. */
export type ChangeBytes = (kind: 'body' | 'retryState' | 'note', id: string, bytes: Uint8Array) => Uint8Array

/** The result of {@link Queue.forget}. */
export interface Forgotten {
  /** How many jobs and dead letters were deleted. */
  readonly deleted: number
  /**
   * How many other jobs match but were claimed, and so were left to their handlers. If such a job is retried, another call can delete it.
   */
  readonly active: number
}

/** A completed job in the log of a queue. */
export interface LogEntry extends StoredJob {
  /** The note of the job: the bytes of `log` in its outcome. */
  readonly note: Uint8Array
  /** When the job became complete. */
  readonly handledAt: Date
  /** The position of the entry in the log, to pass as `after`. */
  readonly cursor: string
}

/** Which page of the log to return. */
export interface LogPage {
  /** Selects jobs that were handled at this time or later. Default: no lower limit. */
  readonly since?: Date | undefined
  /** Selects jobs that were handled before this time. Default: no upper limit. */
  readonly until?: Date | undefined
  /** The cursor of the last entry of the previous page. The entry itself may be gone by now. Default: the first page. */
  readonly after?: string | undefined
  /** The maximum number to return. Default 100. */
  readonly limit?: number
  /** The maximum total size of the bodies of a page, in bytes. A page has at least one entry, whatever its size. Default: no maximum. */
  readonly maxBytes?: number
}

/** How long the entries of a log are kept. */
export interface HistoryOptions {
  /** How long messages stay in the history, in milliseconds from when they were handled. Older messages are dropped once a minute. */
  readonly maxAgeMs: number
  /**
   * The maximum total size of the bodies, in bytes, for all processes together. When it is exceeded, the oldest messages are dropped.
   * Default: no maximum.
   */
  readonly maxBytes?: number
}

/** The log of a queue: the completed jobs that it keeps. */
export interface QueueLog {
  /**
   * Lists entries in the order in which they were appended. An empty page means that there are no more entries. An entry that is appended
   * later has a later cursor.
   */
  list(page?: LogPage): Promise<readonly LogEntry[]>
}

/**
 * The marks of a queue: keys that are set until a given time, in all processes of the queue. The engine stores only digests of the keys.
 */
export interface QueueMarks {
  /**
   * Sets keys until a time, which replaces the time of a key that is already set. A time in the past unsets the keys. Takes effect at once
   * in this process, and within 2 seconds in other processes that have a handler.
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
  /** Called with each job that becomes a dead letter because the queue cannot read it. Must not throw. */
  readonly onUnreadable?: (letter: DeadLetter) => void
  /** Limits how many jobs are claimed. Default: only `concurrency` limits them. */
  readonly room?: Room
  /**
   * The maximum number of jobs that all processes of the queue together may claim per second. An engine that cannot limit this ignores the
   * option, and only `room` limits each process. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * Returns whether a job must run alone in this process, because it may end the process. If such a job is claimed while other jobs run,
   * its claim is released without being counted. Default: all jobs may run together.
   */
  readonly runsAlone?: (job: ClaimedJob) => boolean
  /** How long to keep the entries of the log. Default: forever. */
  readonly history?: HistoryOptions
}

/** How to close a queue. */
export interface CloseOptions {
  /** How long running jobs may go on before their signals abort, in milliseconds. Default 10 000. */
  readonly graceMs?: number
}

/**
 * Keeps jobs until they are complete.
 *
 * Every engine guarantees exactly this: each job is handled at least once, about the oldest first; a retry gets its retry state, and is not
 * handled before its time; ids are known during the dedupe window; dead letters can be listed, redriven and dropped.
 *
 * A wrong argument causes a TypeError, and so does a call of `reserve` or `work`, or a push with `db`, on an observer. After {@link close},
 * every call except `close` and `drain` rejects with `shutting_down`. A call rejects with `queue_unavailable` if the engine fails or does
 * not answer in time.
 */
export interface Queue {
  /**
   * Reserves the queue for an inbox or for a destination. The inbox or destination that gets the queue calls this first. An engine that
   * several processes share stores the use with the jobs: if the jobs are reserved for the other use, each call rejects with
   * `queue_unavailable`. A queue that you use directly, without this call, accepts any jobs.
   *
   * @throws TypeError when this queue is reserved for the other use, or when another destination of this process uses the same jobs.
   */
  reserve?(use: QueueUse): void
  /**
   * How long a claim lasts unless its process renews it, in milliseconds. A job is claimed again if its process died, or if the process
   * blocked its event loop or could not reach the engine for longer than this. Undefined if a claim lasts as long as its process.
   */
  readonly leaseMs?: number | undefined
  /** Whether the jobs survive the end of the process. */
  readonly isDurable?: boolean
  /**
   * Adds jobs: all of them or none. Resolves when the jobs are stored as safely as the engine allows or, with a `db`, are part of the
   * transaction. Resolves to the ids that the queue already knew, whose jobs were not added; to undefined if the engine does not report
   * these ids.
   *
   * @throws HooklineError (as a rejection) `queue_full`; `queue_unavailable`, after which the jobs may have been stored nonetheless.
   */
  push(jobs: readonly Job[], options?: PushOptions): Promise<readonly string[] | undefined>
  /**
   * Starts claiming due jobs, at most `concurrency` at a time, about the oldest first. While the engine is unreachable, nothing is claimed;
   * the queue retries automatically, and then records the outcomes that it still holds.
   *
   * @returns A function to call when `room` may have grown: the queue then asks `room` again.
   * @throws TypeError when the queue already has a handler, or is closed.
   */
  work(handle: HandleJob, options: WorkOptions): () => void
  /**
   * Stops claiming jobs until {@link resume} is called. Jobs that are already claimed go on. Resolves when all jobs of this process have
   * ended and their outcomes are recorded, or when `resume` or `close` ends the pause.
   */
  pause(): Promise<void>
  resume(): void
  /**
   * For tests: waits until the queue has no more work. For the queue of an inbox or a destination, it resolves when every message,
   * including messages to retry, is complete or a dead letter. Retries come due by the clock of the queue: if the clock is manual, advance
   * it. For a queue with your own worker, it resolves when no job is due and this process has none claimed; jobs that come due later are
   * not waited for. In both cases, it also resolves when the queue is closed.
   *
   * @throws TypeError (as a rejection) when the queue belongs to a receiver that was not started.
   */
  drain(): Promise<void>
  counts(): Promise<QueueCounts>
  /** Lists the dead letters, the oldest first unless the page says otherwise. */
  deadLetters(page?: DeadLetterPage): Promise<readonly DeadLetter[]>
  /**
   * Makes dead letters wait again. Resets their `claimCount` and `firstAt`, but keeps their retry states. Skips ids that are not dead
   * letters. Returns how many dead letters it redrove.
   *
   * @throws HooklineError (as a rejection) `queue_full`: some dead letters may already wait again, because 500 are redriven at a time.
   */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Deletes dead letters, and forgets their ids. Returns how many dead letters it deleted. */
  drop(which: readonly string[] | 'all' | StoredDeadLetterFilter): Promise<number>
  /** The log of the queue. Undefined for an engine that keeps none. */
  readonly log?: QueueLog
  /** The marks of the queue. Undefined for an engine that keeps none. */
  readonly marks?: QueueMarks
  /** Whether the queue accepts jobs with a `group`. Default false. */
  readonly hasGroups?: boolean
  /** Whether a handler of the queue can complete its job in a transaction: see {@link BeginTransaction}. Default false. */
  readonly isTransactional?: boolean
  /**
   * Erases a person's data: deletes every waiting job, log entry and dead letter for which `matches` returns true, and forgets the ids of
   * the jobs. Reads everything that is stored. A claimed job that matches is left to its handler, and counted as `active`.
   *
   * @param matches Must not throw.
   */
  forget(matches: (job: StoredJob) => boolean): Promise<Forgotten>
  /**
   * Changes the bytes of dead letters and log entries in place. Jobs that wait or are claimed stay as they are, and so does the log if the
   * engine cannot change it. Undefined if the engine can change neither. Returns how many dead letters and entries it changed.
   *
   * @param change Must not throw.
   */
  readonly rewrite?: (change: ChangeBytes) => Promise<number>
  /**
   * Stops claiming jobs, and gives running jobs and calls in progress the grace period to end. A queue that is not durable also handles the
   * jobs that are due during the grace period. Afterwards, the signals abort, later outcomes change nothing, and a durable queue releases
   * the remaining jobs, so that other workers can claim them. Takes at most a second longer than the grace period. Resolves to the jobs
   * that would be lost when this process ends, the oldest first; a durable queue loses none. A second call waits for the same close.
   */
  close(options?: CloseOptions): Promise<readonly Job[]>
}

/** The types of a queue: its jobs, its calls and their options. */

import type { QueueCounts } from './health.ts'

/** The part of Hookline that pushes and handles the jobs of a queue. */
export type QueueUse = 'inbox' | 'destination'

/** A unit of work to push to a queue. */
export interface Job {
  /**
   * The id of the job, a lowercase UUID. A push skips the job if another job with this id is waiting, is claimed or is a dead letter. It
   * also skips the job while the id is in the dedupe window of the engine. By default, the window is 24 hours, from the push or from the
   * completion, depending on the engine.
   */
  readonly id: string
  readonly body: Uint8Array
  /** The job is not handled before this time. Default: the job is due at once. */
  readonly notBefore?: Date
  /**
   * The name of the job's group. Workers handle the jobs of a group one at a time, in the order in which they were pushed. A job that waits
   * for a retry holds up the later jobs of its group until that job is complete or a dead letter. A queue whose `hasGroups` is not true
   * refuses a job with a group. Default: no group.
   */
  readonly group?: string | undefined
}

/** The options of {@link Queue.push}. */
export interface PushOptions {
  /**
   * Your own transaction in the database of the queue. The jobs exist once the transaction commits; if it is rolled back, they never exist.
   * `pgBossQueue` accepts a `pg` client after `BEGIN`, or an object with a method `executeSql(text, values)` that resolves to `{ rows }`.
   * `sqliteQueue` accepts a node:sqlite `DatabaseSync` that has opened the file of the queue, after `BEGIN IMMEDIATE`. The other engines of
   * Hookline refuse a push with `db`. If a statement fails, the push rejects with the error of the database. In that case, roll back the
   * transaction.
   */
  readonly db?: object
}

/** A job that a worker has claimed. */
export interface ClaimedJob {
  readonly id: string
  readonly body: Uint8Array
  /**
   * How many times the job has been claimed, including this time. A claim counts even if its process died or its lease expired; see
   * `bullmqQueue` for an exception.
   */
  readonly claimCount: number
  /** The time of the first claim. */
  readonly firstAt: Date
  /**
   * The time at which the job came due. For a job with `notBefore`, an engine may give the time of the push instead. Present at the first
   * claim; an engine may leave it undefined at later claims.
   */
  readonly dueAt?: Date
  /**
   * The retry state: the bytes that a handler stored last for the next claim, in its outcome or through {@link SaveState}. Undefined if no
   * handler has stored a retry state.
   */
  readonly retryState: Uint8Array | undefined
  /**
   * How long the event loop was blocked when an earlier claim of the job lapsed in this process, in milliseconds; undefined if none lapsed.
   * The queue sets this field; its store does not.
   */
  readonly blockedMs?: number
}

/** The outcome that completes a job. If `log` is set, the job is appended to the log of the queue, with these bytes as its note. */
export interface Complete {
  readonly complete: true
  readonly log?: Uint8Array
}

/** The decision of a handler: to complete the job, to retry it, or to make it a dead letter. */
export type Outcome =
  | Complete
  /** Retries the job at this time, or at once if the time has passed. The later jobs of its group wait for the retry. */
  | { readonly retryAt: Date; readonly retryState?: Uint8Array }
  /** Makes the job a dead letter, with this text as the reason. */
  | { readonly deadLetter: string; readonly retryState?: Uint8Array }

/**
 * Handles a job. The signal aborts when the queue is closing and its grace period is over. If the promise rejects, or resolves to anything
 * but an outcome, the job is retried and keeps its retry state. The delay before this retry is 1 second after the first claim, and doubles
 * with each further claim, up to 60 seconds.
 */
export type HandleJob = (
  job: ClaimedJob,
  signal: AbortSignal,
  save?: SaveState,
  begin?: BeginTransaction,
) => Promise<Outcome>

/**
 * Begins a transaction. The database rolls the transaction back if a statement runs for longer than `timeoutMs`, or if no statement runs
 * for that long. Only a queue whose `isTransactional` is true passes this function to its handler.
 */
export type BeginTransaction = (timeoutMs: number) => Promise<JobTransaction>

/** A job that a transaction completes. */
export interface Completion<Claim extends ClaimedJob = ClaimedJob> {
  /** The claimed job: the same object that its handler received. */
  readonly claim: Claim
  /** The note to store with the job in the log. If undefined, the job is not appended to the log. */
  readonly log: Uint8Array | undefined
}

/** A transaction in the database of the queue, which can also complete jobs. */
export interface JobTransaction<Claim extends ClaimedJob = ClaimedJob> {
  /** The connection on which the transaction runs. In a queue of `pgBossQueue`, this is a `pg` client. */
  readonly db: object
  /**
   * Completes the jobs, appends each job that has a note to the log, and commits the transaction. The queue then ignores the outcomes that
   * the handlers of these jobs return.
   *
   * @throws HooklineError (as a rejection): `lease_lapsed` if a claim has ended; `handler_failed` if the database refuses what the handlers
   *   wrote; `queue_unavailable` if the database fails. In each case, nothing was changed, unless the commit succeeded and only the answer
   *   to it was lost.
   */
  commit(completions: readonly Completion<Claim>[]): Promise<void>
  /** Rolls back the transaction, even while a statement is running. Never rejects. */
  rollback(): Promise<void>
}

/**
 * Stores a retry state while the job is being handled. If the process dies before the job has an outcome, the next claim gets this state.
 * An outcome replaces the state with its own. The promise never rejects: if the state cannot be stored, the queue reports the error.
 */
export type SaveState = (retryState: Uint8Array) => Promise<void>

/** A second limit, beside `concurrency`, on how many jobs the queue claims. The queue calls `count` before each claim. */
export interface Room {
  /** Returns the maximum number of jobs to claim now. */
  count(): number
  /** Returns the time from which more jobs may be claimed even if no running job ends. Returns undefined if a job has to end first. */
  nextAt(): Date | undefined
}

/** A job that is not retried until it is redriven. */
export interface DeadLetter {
  readonly id: string
  readonly body: Uint8Array
  readonly reason: string
  readonly retryState: Uint8Array | undefined
  /** The time at which the job became a dead letter. */
  readonly failedAt: Date
}

/** Selects a page of the dead letters. */
export interface DeadLetterPage {
  /**
   * The id of the last dead letter of the previous page. If no dead letter has this id any more, the first page is returned. Default: the
   * first page is returned.
   */
  readonly after?: string
  /** The maximum number of dead letters on the page. Default 100. */
  readonly limit?: number
  /**
   * The maximum total size of the bodies on the page, in bytes. A dead letter that exceeds the maximum is returned on a page of its own.
   * Default: no maximum.
   */
  readonly maxBytes?: number
  /** Whether to list the newest dead letters first. Default false: the oldest come first. */
  readonly newestFirst?: boolean
}

/** Selects the dead letters to drop. A dead letter must match every condition that is given. At least one condition is required. */
export interface DeadLetterFilter<Reason extends string = string> {
  /** Matches jobs that became dead letters before this time. */
  readonly olderThan?: Date
  /** Matches dead letters with this reason. */
  readonly reason?: Reason
}

/** A filter that can also select dead letters by their stored bytes. */
export interface StoredDeadLetterFilter extends DeadLetterFilter {
  /** Matches dead letters for which this function returns true. The function must not throw. */
  readonly matches?: (letter: DeadLetter) => boolean
}

/** The id and the body of a job, a dead letter or a log entry, as they are stored. */
export type StoredJob = Pick<Job, 'id' | 'body'>

/** The bytes that a queue stores for a job. */
export interface StoredBytes {
  readonly id: string
  readonly body?: Uint8Array
  readonly retryState?: Uint8Array | undefined
  readonly note?: Uint8Array
}

/** Returns the bytes to store in place of `bytes`, or `bytes` itself to leave them unchanged. */
export type ChangeBytes = (kind: 'body' | 'retryState' | 'note', id: string, bytes: Uint8Array) => Uint8Array

/** The result of {@link Queue.forget}. */
export interface Forgotten {
  /** How many jobs, log entries and dead letters were deleted. */
  readonly deleted: number
  /**
   * How many matching jobs were left to their handlers, because they were claimed. If such a job is retried, another call to `forget` can
   * delete it.
   */
  readonly active: number
}

/** A completed job in the log of a queue. */
export interface LogEntry extends StoredJob {
  /** The note of the job: the bytes of `log` in its outcome. */
  readonly note: Uint8Array
  /** The time at which the job was completed. */
  readonly handledAt: Date
  /** The position of the entry in the log, to pass as `after`. */
  readonly cursor: string
}

/** Selects a page of the log. */
export interface LogPage {
  /** Selects jobs that were completed at this time or later. Default: no lower limit. */
  readonly since?: Date | undefined
  /** Selects jobs that were completed before this time. Default: no upper limit. */
  readonly until?: Date | undefined
  /** The cursor of the last entry of the previous page, even if that entry has been dropped since. Default: the first page is returned. */
  readonly after?: string | undefined
  /** The maximum number of entries on the page. Default 100. */
  readonly limit?: number
  /**
   * The maximum total size of the bodies on the page, in bytes. An entry that exceeds the maximum is returned on a page of its own.
   * Default: no maximum.
   */
  readonly maxBytes?: number
}

/** Limits the age and the total size of the messages in the history. */
export interface HistoryOptions {
  /** How long a message stays in the history after it was handled, in milliseconds. Older messages are dropped within a minute. */
  readonly maxAgeMs: number
  /**
   * The maximum total size of the bodies in the history, in bytes, for all processes together. When the history exceeds it, the oldest
   * messages are dropped within a minute. Default: no maximum.
   */
  readonly maxBytes?: number
}

/** The log of a queue, which keeps completed jobs. */
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
   * Sets keys until the given time, or unsets them if the time has passed. The time replaces the earlier time of a key that is already set.
   * The change is effective in this process when the promise resolves, and within 2 seconds in other processes that have a handler.
   */
  set(keys: readonly string[], until: Date): Promise<void>
  /**
   * Returns whether a key is set, according to the changes that this process has read. The process reads changes in `counts()`, and every
   * second while the queue has a handler.
   */
  has(key: string): boolean
  /**
   * The number of keys that are set, according to the changes that this process has read. Also counts keys whose time has ended since the
   * process read them.
   */
  readonly size: number
}

/** The options of {@link Queue.work}. */
export interface WorkOptions {
  /** The maximum number of jobs that this process handles at a time. */
  readonly concurrency: number
  /** Receives each job that became a dead letter because the queue could not read it. Must not throw. */
  readonly onUnreadable?: (letter: DeadLetter) => void
  /** A second limit on how many jobs are claimed. Default: only `concurrency` limits them. */
  readonly room?: Room
  /**
   * The maximum number of jobs that all processes of the queue together claim per second. An engine without such a limit ignores the
   * option; only `room` then limits each process. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * Returns whether a job must run alone in this process, because it may end the process. If such a job is claimed together with other
   * jobs, or while other jobs run, the new claims are released and do not count. Default: all jobs may run together.
   */
  readonly runsAlone?: (job: ClaimedJob) => boolean
  /** Limits the age and the size of the log. Default: the log keeps all entries. */
  readonly history?: HistoryOptions
}

/** The options of {@link Queue.close}. */
export interface CloseOptions {
  /** How long running jobs may continue before their signals abort, in milliseconds. Default 10 000. */
  readonly graceMs?: number
}

/**
 * Keeps jobs until they are complete. Every engine guarantees the following, and no more:
 *
 * - Each job is handled at least once, unless the queue is not durable and its process ends first.
 * - Jobs are handled approximately in the order of their age, the oldest first.
 * - A retry gets the retry state of its job, and does not begin before its time.
 * - A job is not added while its id is in the dedupe window.
 * - Dead letters can be listed, redriven and dropped.
 *
 * A wrong argument causes a TypeError. On an observer, a call to `reserve` or `work` and a push with `db` also cause a TypeError. After
 * {@link Queue.close}, each call that needs the engine rejects with `shutting_down`. A call rejects with `queue_unavailable` if the engine
 * fails or does not respond in time.
 */
export interface Queue {
  /**
   * Reserves the queue for an inbox or for a destination. An inbox or a destination makes this call before any other. An engine that
   * several processes share stores the use with the jobs. If the jobs are already reserved for the other use, this call throws a
   * HooklineError `queue_unavailable`, or each later call rejects with it. A queue that you use directly, without this call, accepts any
   * jobs.
   *
   * @throws TypeError if this queue is reserved for the other use, or if another destination of this process uses the same jobs.
   */
  reserve?(use: QueueUse): void
  /**
   * How long a claim lasts unless its process renews it, in milliseconds. The claim lapses if the process has died, has blocked its event
   * loop or could not reach the engine for this long; another worker then claims the job. Undefined if a claim lasts as long as its
   * process.
   */
  readonly leaseMs?: number | undefined
  /** Whether the jobs survive the end of the process. */
  readonly isDurable?: boolean
  /**
   * Adds jobs. Resolves when all of them are stored as safely as the engine allows or, with a `db`, are part of the transaction. The result
   * lists the ids of the jobs that the queue skipped, because it already knew the ids. The result is undefined if the engine does not report
   * these ids.
   *
   * @throws HooklineError (as a rejection): `queue_full`, after which no job was added; `queue_unavailable`, after which some or all of the
   *   jobs may have been added. Pushing the same jobs again is safe, because the queue skips the ids that it knows.
   */
  push(jobs: readonly Job[], options?: PushOptions): Promise<readonly string[] | undefined>
  /**
   * Starts claiming due jobs, at most `concurrency` at a time, approximately the oldest first. While the engine is unreachable, the queue
   * claims nothing and keeps trying. When the engine responds again, the queue records the outcomes of the jobs that have ended in the
   * meantime.
   *
   * @returns A function that makes the queue ask `room` again. Call it when `room` may allow more jobs than before.
   * @throws TypeError if the queue already has a handler, or is closed.
   */
  work(handle: HandleJob, options: WorkOptions): () => void
  /**
   * Stops claiming jobs until {@link Queue.resume} is called. Jobs that are already claimed continue. Resolves when all jobs of this
   * process have ended and their outcomes are recorded, or when `resume` or `close` ends the pause.
   */
  pause(): Promise<void>
  resume(): void
  /**
   * Waits until the queue has no more work. This method is meant for tests. The queue of an inbox or a destination has no more work when
   * every message is complete or a dead letter, including messages that are to be retried. Retries come due by the clock of the queue, so
   * a test with a manual clock must advance the clock. A queue with your own worker has no more work when no job is due and this process
   * has claimed none, even if jobs come due later. The promise also resolves when the queue is closed.
   *
   * @throws TypeError (as a rejection) if the queue belongs to a receiver that was not started.
   */
  drain(): Promise<void>
  counts(): Promise<QueueCounts>
  /** Lists a page of the dead letters: by default, the 100 oldest. */
  deadLetters(page?: DeadLetterPage): Promise<readonly DeadLetter[]>
  /**
   * Makes dead letters wait again. Resets their `claimCount` and `firstAt`, but keeps their retry states. Skips ids that no dead letter
   * has. Returns how many dead letters it redrove.
   *
   * @throws HooklineError (as a rejection) `queue_full`. Some dead letters may then already wait again, because 500 are redriven at a time.
   */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Deletes dead letters, and forgets their ids. Returns how many dead letters it deleted. */
  drop(which: readonly string[] | 'all' | StoredDeadLetterFilter): Promise<number>
  /** The log of the queue. Undefined if the engine has no log. */
  readonly log?: QueueLog
  /** The marks of the queue. Undefined if the engine has no marks. */
  readonly marks?: QueueMarks
  /** Whether the queue accepts jobs with a `group`. Default false. */
  readonly hasGroups?: boolean
  /** Whether a handler of the queue can complete its job in a transaction: see {@link BeginTransaction}. Default false. */
  readonly isTransactional?: boolean
  /**
   * Deletes every waiting job, log entry and dead letter for which `matches` returns true, and forgets their ids. Use this to erase the
   * data of a person, for example. Reads everything that is stored. A claimed job that matches is left to its handler, and counted as
   * `active`.
   *
   * @param matches Selects the jobs, log entries and dead letters to delete. Must not throw.
   */
  forget(matches: (job: StoredJob) => boolean): Promise<Forgotten>
  /**
   * Changes the stored bytes of dead letters in place, and of log entries if the engine can. Jobs that wait or are claimed keep their
   * bytes. Undefined if the engine cannot change dead letters. Returns how many dead letters and entries it changed.
   *
   * @param change Must not throw.
   */
  readonly rewrite?: (change: ChangeBytes) => Promise<number>
  /**
   * Stops claiming jobs, and gives running jobs and calls in progress the grace period to end. During the grace period, a queue that is not
   * durable also handles the jobs that are due. Afterwards, the signals of the remaining jobs abort, and their outcomes are ignored. A
   * durable queue releases the remaining jobs, so that other workers can claim them. Closing takes at most a second longer than the grace
   * period. A second call waits for the same close.
   *
   * @returns The jobs that are lost when this process ends, the oldest first. A durable queue loses no jobs.
   */
  close(options?: CloseOptions): Promise<readonly Job[]>
}

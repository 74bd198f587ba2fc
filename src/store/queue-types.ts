/** The contract of a queue, types only: the caller owns when a job runs, the queue owns not losing it. */

import type { QueueCounts } from './health.ts'

/** The use of a queue: the part that pushes its jobs and handles them. */
export type QueueUse = 'inbox' | 'destination'

/** One unit of durable work, as it is pushed. */
export interface Job {
  /**
   * A lowercase UUID. Pushing an id that waits, is claimed or is a dead letter changes nothing, and so does pushing one
   * within the dedupe window of the engine: 24 hours by default, counted from the push or from the completion.
   */
  readonly id: string
  readonly body: Uint8Array
  /** The earliest time to handle it. Default: at once. */
  readonly notBefore?: Date
  /**
   * The name of its group. Workers handle the jobs of a group one at a time, in the order of their pushes: one that is to be retried
   * holds the others until it is complete or a dead letter. A queue without groups refuses it. Default: no group.
   */
  readonly group?: string | undefined
}

/** How to push jobs. */
export interface PushOptions {
  /**
   * A transaction of yours in the database of the queue: the jobs exist once it commits, and never when it is rolled back.
   * `pgBossQueue` takes a client of pg after `BEGIN`, or an object with `executeSql(text, values)` that resolves to `{ rows }`;
   * `sqliteQueue` a `DatabaseSync` of node:sqlite on its file after `BEGIN IMMEDIATE`; other engines of Hookline take none. What the database throws rejects the push as it is: roll back.
   */
  readonly db?: object
}

/** A job that a worker holds. */
export interface ClaimedJob {
  readonly id: string
  readonly body: Uint8Array
  /** How often it was claimed, this time included. A claim that ended because its process died or its lease was over counts too. */
  readonly claimCount: number
  /** When it was claimed first. */
  readonly firstAt: Date
  /** When it came due, or was pushed if it has a `notBefore`. Set at the first claim; later ones may leave it out. */
  readonly dueAt?: Date
  /** The state that the previous outcome stored; undefined when it stored none. */
  readonly retryState: Uint8Array | undefined
  /**
   * How long the event loop of this process was blocked when an earlier claim of this job lapsed here, in milliseconds;
   * undefined when no claim lapsed here. A queue sets it, its store does not.
   */
  readonly blockedMs?: number
}

/** The job is complete. With `log`, it is appended to the log of the queue, with these bytes as its note. */
export interface Complete {
  readonly complete: true
  readonly log?: Uint8Array
}

/** The decision of a handler about a job. */
export type Outcome =
  | Complete
  /** Handle it again at this time. A time in the past means now. The other jobs of its group wait for it. */
  | { readonly retryAt: Date; readonly retryState?: Uint8Array }
  /** Make it a dead letter, for this reason. */
  | { readonly deadLetter: string; readonly retryState?: Uint8Array }

/**
 * Handles a job. The signal aborts when the queue is closed and its grace is over. A promise that rejects, or resolves to
 * anything but an outcome, is a retry with the same retry state: after 1 second the first time, doubling up to a minute.
 */
export type HandleJob = (
  job: ClaimedJob,
  signal: AbortSignal,
  save?: SaveState,
  begin?: BeginTransaction,
) => Promise<Outcome>

/** Begins a transaction that ends by itself after `timeoutMs`. Only a queue that is `isTransactional` gives it to its handler. */
export type BeginTransaction = (timeoutMs: number) => Promise<JobTransaction>

/** A job that a transaction completes. */
export interface Completion<Claim extends ClaimedJob = ClaimedJob> {
  /** The job, as its handler got it. */
  readonly claim: Claim
  /** Its note in the log. */
  readonly log: Uint8Array | undefined
}

/** A transaction in the database of the queue, in which jobs are completed, too. */
export interface JobTransaction<Claim extends ClaimedJob = ClaimedJob> {
  /** The connection, between BEGIN and COMMIT: a client of `pg`. */
  readonly db: object
  /**
   * Completes jobs, appends those with a note to the log, and commits all of it. The outcomes of their handlers change nothing afterwards.
   *
   * @throws HooklineError (as a rejection) `lease_lapsed` when a claim is over, `queue_unavailable` when PostgreSQL fails. Nothing
   *   was changed then, unless only the answer to the commit was lost.
   */
  commit(completions: readonly Completion<Claim>[]): Promise<void>
  /** Undoes all of it, also while a statement runs. Never rejects. */
  rollback(): Promise<void>
}

/**
 * Stores a retry state while the job is handled: the next claim has it if this one ends without an outcome, because the process dies.
 * Resolves when it is stored, or when that has failed, which the queue reports. An outcome replaces it.
 */
export type SaveState = (retryState: Uint8Array) => Promise<void>

/** How many more jobs a handler accepts, below its concurrency. Asked before each claim. */
export interface Room {
  /** The most to claim now. */
  count(): number
  /** When there is room again although no job has ended; undefined when a job has to end first. */
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

/** Which page of the dead letters. */
export interface DeadLetterPage {
  /** The id of the last one of the previous page. Default, or when it is no dead letter any more: the first page. */
  readonly after?: string
  /** The most to return. Default 100. */
  readonly limit?: number
  /** The most bytes of their bodies: the page ends before it has more, but not before the first one. Default: any number. */
  readonly maxBytes?: number
  /** Lists them from the newest on. Default: from the oldest on. */
  readonly newestFirst?: boolean
}

/** Which dead letters to drop: those that match all that is given. Give at least one. */
export interface DeadLetterFilter<Reason extends string = string> {
  /** Matches jobs that became dead letters before this time. */
  readonly olderThan?: Date
  /** Matches dead letters with this reason. */
  readonly reason?: Reason
}

/** The same by what is stored. */
export interface StoredDeadLetterFilter extends DeadLetterFilter {
  /** Matches dead letters for which it returns true. Must not throw. */
  readonly matches?: (letter: DeadLetter) => boolean
}

/** A job or a dead letter, as it is stored. */
export type StoredJob = Pick<Job, 'id' | 'body'>

/** The bytes that are stored of a job. */
export interface StoredBytes {
  readonly id: string
  readonly body?: Uint8Array
  readonly retryState?: Uint8Array | undefined
  readonly note?: Uint8Array
}

/** Returns what is to be stored in place of some bytes: the same ones when nothing changes. */
export type ChangeBytes = (kind: 'body' | 'retryState' | 'note', id: string, bytes: Uint8Array) => Uint8Array

/** The result of {@link Queue.forget}. */
export interface Forgotten {
  /** How many jobs and dead letters were deleted. */
  readonly deleted: number
  /** How many others were claimed: their handlers end them. Those that are to be retried then are deleted by another call. */
  readonly active: number
}

/** A job in the log of a queue: it is complete. */
export interface LogEntry extends StoredJob {
  /** The bytes that its outcome noted. */
  readonly note: Uint8Array
  /** When it became complete. */
  readonly handledAt: Date
  /** Its sequence, for `after`. */
  readonly cursor: string
}

/** Which page of the log, in its sequence. */
export interface LogPage {
  /** Selects the entries that were handled at this time or later. Default: all. */
  readonly since?: Date | undefined
  /** Selects the entries that were handled before this time. Default: all. */
  readonly until?: Date | undefined
  /** The cursor of the last one of the previous page, which may be gone since. */
  readonly after?: string | undefined
  /** The most to return. Default 100. */
  readonly limit?: number
  /** The most bytes of their bodies, as of {@link DeadLetterPage}. Default: any number. */
  readonly maxBytes?: number
}

/** How long the entries of a log are kept. */
export interface HistoryOptions {
  /** How long messages stay in the history, in milliseconds from when they were handled. Older ones are dropped once a minute. */
  readonly maxAgeMs: number
  /** The most bytes of bodies, of all processes together: past that the oldest are dropped. Default: as many as there is room for. */
  readonly maxBytes?: number
}

/** The log of a queue: what was done, as long as it is kept. */
export interface QueueLog {
  /** Lists entries in their sequence. None when no other follows: an entry that is appended later has a later cursor. */
  list(page?: LogPage): Promise<readonly LogEntry[]>
}

/** The marks of a queue: keys that are set until a time, for all of its processes. The engine has digests of them. */
export interface QueueMarks {
  /** Sets keys until a time, in place of an earlier one: here at once, in another process with a handler within 2 seconds. A time that is over unsets them. */
  set(keys: readonly string[], until: Date): Promise<void>
  /** Returns whether a key is set, as far as this process knows. It reads what changes every second while it has a handler, and with `counts()`. */
  has(key: string): boolean
  /** How many keys are set, as far as this process knows. */
  readonly size: number
}

/** How to handle jobs. */
export interface WorkOptions {
  /** The most jobs that are handled at a time. */
  readonly concurrency: number
  /** Receives each job that the queue makes a dead letter by itself, because it cannot read it. Must not throw. */
  readonly onUnreadable?: (letter: DeadLetter) => void
  /** Limits how many jobs are claimed. Default: `concurrency` alone does. */
  readonly room?: Room
  /**
   * The most jobs that all processes of the queue together may claim a second, for an engine that can limit that; others ignore it.
   * `room` holds the same in each process. Default: no limit.
   */
  readonly maxPerSecond?: number
  /**
   * Whether a job must run while no other of this process does, because it may end the process. Such a claim is given back
   * uncounted until it is the only one. Default: none must.
   */
  readonly runsAlone?: (job: ClaimedJob) => boolean
  /** How long the entries of the log are kept. Default: without limit. */
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
 * Promised by every engine: each job is handled at least once; about the oldest first; a retry not before its time, with
 * its state; the dedupe window; dead letters that can be listed, redriven and dropped. Nothing more.
 *
 * A wrong argument is a TypeError, and so is each `reserve`, `work` and push with `db` of an observer. After {@link close} each call
 * but `close` and `drain` rejects with `shutting_down`. A call that the engine fails, or not in time, with `queue_unavailable`.
 */
export interface Queue {
  /**
   * Keeps the queue for the inbox or the destination that it was given to, which calls this first. An engine that processes
   * share keeps that with the jobs: where they have the other use, each call rejects with `queue_unavailable`. A queue that is
   * used without this, by hand, has any jobs.
   *
   * @throws TypeError when this queue serves the other use; when another destination of this process uses the same jobs.
   */
  reserve?(use: QueueUse): void
  /**
   * How long a claim lasts that its process does not renew, in milliseconds: the process of a job that is claimed again died,
   * blocked its event loop or lost the engine for longer. Undefined when a claim lasts as long as its process.
   */
  readonly leaseMs?: number | undefined
  /** Whether its jobs outlive the process. */
  readonly isDurable?: boolean
  /**
   * Adds jobs, all of them or none. Resolves when they are stored as safely as the engine stores, or are in the transaction: to the
   * ids that it had already, whose push changed nothing; to undefined where its engine does not tell.
   *
   * @throws HooklineError (as a rejection) `queue_full`; `queue_unavailable`, and then the jobs may still have been stored.
   */
  push(jobs: readonly Job[], options?: PushOptions): Promise<readonly string[] | undefined>
  /**
   * Starts claiming due jobs, at most `concurrency` at a time, about the oldest first. While the engine is unreachable
   * nothing is claimed; the queue retries automatically and then records the outcomes it still has.
   *
   * @returns A function that asks `room` again.
   * @throws TypeError when the queue has a handler already, or is closed.
   */
  work(handle: HandleJob, options: WorkOptions): () => void
  /**
   * Claims nothing more until {@link resume}. Jobs that are claimed already go on. Resolves when none is left here and their outcomes are
   * recorded, or when `resume` or `close` ends the pause.
   */
  pause(): Promise<void>
  resume(): void
  /**
   * Waits for the queue in tests. The queue of an inbox or a destination resolves when every message is complete or a dead letter, retries
   * included. It waits by its clock: move one that stands still. A queue with your own worker resolves when no job is due and none is
   * claimed here, because other jobs may be due much later. Both resolve when the queue is closed.
   *
   * @throws TypeError (as a rejection) when it is the queue of a receiver that was not started.
   */
  drain(): Promise<void>
  counts(): Promise<QueueCounts>
  /** The dead letters, the oldest first unless the page says otherwise. */
  deadLetters(page?: DeadLetterPage): Promise<readonly DeadLetter[]>
  /**
   * Makes dead letters wait again: their claim count and first time begin anew, their retry state stays. Skips ids that are no
   * dead letters. Returns how many.
   *
   * @throws HooklineError (as a rejection) `queue_full`: some may wait again, at 500 a time.
   */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Deletes dead letters, and forgets their ids. Returns how many. */
  drop(which: readonly string[] | 'all' | StoredDeadLetterFilter): Promise<number>
  /** Undefined for an engine that keeps none. */
  readonly log?: QueueLog
  /** Undefined for an engine that keeps none. */
  readonly marks?: QueueMarks
  /** Whether it accepts jobs with a `group`. Default false. */
  readonly hasGroups?: boolean
  /** Whether its handler can complete a job in a transaction: see {@link BeginTransaction}. Default false. */
  readonly isTransactional?: boolean
  /**
   * Deletes every job that waits, every entry of the log and every dead letter whose id or body matches, and forgets the ids of the jobs: to erase the data of a person. Reads all of them. A claimed job is left to its handler, and counted as `active`.
   *
   * @param matches Must not throw.
   */
  forget(matches: (job: StoredJob) => boolean): Promise<Forgotten>
  /**
   * Changes the bytes of dead letters and of the log in place. Jobs that wait or are claimed stay, and so does a log that the engine cannot
   * change. Undefined for an engine that can change neither. Returns how many were changed.
   *
   * @param change Must not throw.
   */
  readonly rewrite?: (change: ChangeBytes) => Promise<number>
  /**
   * Claims nothing more and gives running jobs the grace; a queue whose jobs end with the process also handles what is due
   * meanwhile. Afterwards the signals abort and later outcomes change nothing: a durable queue releases those jobs for
   * other workers. Calls under way get the grace, too. Resolves to the jobs that would be lost with this process, the oldest
   * first; a durable queue loses none. Takes at most a second more than the grace. Closing again waits for the same end.
   */
  close(options?: CloseOptions): Promise<readonly Job[]>
}

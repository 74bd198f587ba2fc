/** The contract of durable work, types only: the caller owns when, the queue owns not losing it. */

/** A piece of work, as it is put into a queue. */
export interface Job {
  /**
   * A UUID in lower case. One that is known is left alone, so pushing twice is pushing once: that of a job that waits, is
   * handed out or is dead, or was done within the last 24 hours or what the engine says instead.
   */
  readonly id: string
  readonly body: Uint8Array
  /** Not handed out before this time, in milliseconds since the epoch. Default: at once. */
  readonly notBefore?: number
}

/**
 * A piece of work, as it is handed out: to one worker at a time, under a lease that is renewed while the handler runs and
 * ends when its process dies.
 */
export interface ClaimedJob {
  readonly id: string
  readonly body: Uint8Array
  /** How often it was handed out, this time included, also when that came to nothing because its process died. */
  readonly deliveries: number
  /** When it was handed out first, in milliseconds since the epoch. */
  readonly firstAt: number
  /** What the outcome before asked to keep; undefined when that was nothing. */
  readonly state: Uint8Array | undefined
}

/** What became of a job that was handed out. */
export type Outcome =
  | { readonly done: true }
  /**
   * Hand it out again at this time, in milliseconds since the epoch, with this state. A time that has passed is now:
   * behind what is due already.
   */
  | { readonly retryAt: number; readonly state?: Uint8Array }
  /** Put it on the list of the dead, for this reason, with this state. */
  | { readonly dead: string; readonly state?: Uint8Array }

/**
 * Works on a job. The signal aborts when the queue is closed and its grace is over: end soon then. A promise that
 * rejects, or resolves to no outcome, is a retry with the same state, 1 second later the first time and twice as long
 * each time, up to a minute; the queue tells nobody.
 */
export type HandleJob = (job: ClaimedJob, signal: AbortSignal) => Promise<Outcome>

/** A job that is dead until somebody re-drives it. */
export interface DeadJob {
  readonly id: string
  readonly body: Uint8Array
  readonly reason: string
  readonly state: Uint8Array | undefined
  /** When it died, in milliseconds since the epoch. */
  readonly diedAt: number
}

/** How much there is. */
export interface QueueCounts {
  /** Waiting to be handed out, now or later. */
  readonly waiting: number
  /** Handed out at the moment. */
  readonly active: number
  readonly dead: number
  /** When the job that is due the longest came due, in milliseconds since the epoch; undefined when none is due. */
  readonly oldestDueAt: number | undefined
}

/** Which page of the dead. */
export interface DeadPage {
  /** Those that died after this one; all of them when it is not, or no more, among the dead. Default: all of them. */
  readonly after?: string
  /** Most of them. Default 100. */
  readonly limit?: number
}

/** How to close. */
export interface CloseOptions {
  /** How long running jobs may still take, in milliseconds. */
  readonly graceMs: number
}

/** Keeps jobs until they are done. Each call throws, or rejects with, a TypeError for arguments that make no sense. */
export interface Queue {
  /**
   * Puts jobs in, all of them or none. Resolves when they are as safe as this queue makes them.
   *
   * @throws HooklineError (as a rejection) `queue_full`; `queue_unavailable` when whatever keeps the jobs does not answer
   *   in time or says no, and then they may be in all the same; `shutting_down` after {@link close}.
   */
  push(jobs: readonly Job[]): Promise<void>
  /**
   * Begins to hand jobs out, so many at a time, the longest due first. While the engine is away nothing is handed out; it
   * goes on by itself when the engine is back, and what became of a job meanwhile is told then.
   *
   * @throws TypeError when somebody works on this queue already: one queue serves one destination or one inbox; and when
   * it is closed.
   */
  work(handle: HandleJob, options: { readonly concurrency: number }): void
  /** Resolves when no job is due and none is handed out, or the queue is closed. One that waits for its time is not due. */
  drain(): Promise<void>
  counts(): Promise<QueueCounts>
  /** The dead, the longest dead first. */
  dead(page?: DeadPage): Promise<readonly DeadJob[]>
  /**
   * Hands dead jobs out anew: their count, first time and state begin again. All of them or none; an id that is not among
   * the dead is passed over. Returns how many.
   *
   * @throws HooklineError (as a rejection) `queue_full`, `queue_unavailable`, or `shutting_down` after {@link close}.
   */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Forgets dead jobs, their ids included. Returns how many. */
  drop(ids: readonly string[] | 'all'): Promise<number>
  /**
   * Hands out nothing more, and gives running jobs the grace; a queue that ends with the process goes on with what is due
   * meanwhile. When it is over their signal aborts, and what they say later changes nothing: a queue that outlives the
   * process hands those jobs out elsewhere at once. Resolves to the jobs that would be lost with this process, the oldest
   * first and those still running included; none from a queue that outlives it. Closing again waits for the same end.
   */
  close(options: CloseOptions): Promise<readonly Job[]>
}

/** The contract of durable work, types only: the caller owns when, the queue owns not losing it. */

/** A piece of work, as it is put into a queue. */
export interface Job {
  /** A UUID. One that is known is left alone: pushing twice is pushing once. */
  readonly id: string
  readonly body: Uint8Array
  /** Not handed out before this time, in milliseconds since the epoch. Default: at once. */
  readonly notBefore?: number
}

/** A piece of work, as it is handed out. */
export interface ClaimedJob {
  readonly id: string
  readonly body: Uint8Array
  /** How often it was handed out, this time included, also when that came to nothing because a process died. */
  readonly deliveries: number
  /** When it was handed out first, in milliseconds since the epoch. */
  readonly firstAt: number
  /** What the outcome before asked to keep. */
  readonly state: Uint8Array | undefined
}

/** What became of a job that was handed out. */
export type Outcome =
  | { readonly done: true }
  /** Hand it out again at this time, in milliseconds since the epoch, with this state. */
  | { readonly retryAt: number; readonly state?: Uint8Array }
  /** Put it on the list of the dead, for this reason, with this state. */
  | { readonly dead: string; readonly state?: Uint8Array }

/**
 * Works on a job. The signal aborts when the queue is closed and its grace is over. A promise that rejects is a retry a
 * little later.
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
}

/** Which page of the dead: those after this id, in the order in which they died. */
export interface DeadPage {
  readonly after?: string
  /** Most of them. Default 100. */
  readonly limit?: number
}

/** How to close. */
export interface CloseOptions {
  /** How long running jobs may still take, in milliseconds. */
  readonly graceMs: number
}

/** Keeps jobs until they are done. */
export interface Queue {
  /**
   * Puts jobs in, all of them or none. Resolves when they are as safe as this queue makes them.
   *
   * @throws HooklineError (as a rejection) `queue_full`, or `shutting_down` after {@link close}.
   */
  push(jobs: readonly Job[]): Promise<void>
  /**
   * Begins to hand jobs out, so many at a time.
   *
   * @throws TypeError when somebody works on this queue already: one queue serves one destination or one inbox.
   */
  work(handle: HandleJob, options: { readonly concurrency: number }): void
  /** Resolves when no job is due and none is handed out. One that waits for its time is not due. */
  drain(): Promise<void>
  counts(): Promise<QueueCounts>
  /** The dead, the longest dead first. */
  dead(page?: DeadPage): Promise<readonly DeadJob[]>
  /** Hands dead jobs out anew: their count, first time and state begin again. Returns how many. */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Forgets dead jobs. Returns how many. */
  drop(ids: readonly string[] | 'all'): Promise<number>
  /**
   * Hands out nothing more, and gives running jobs the grace. Resolves to the jobs that would be lost with this process,
   * none from a queue that outlives it. Closing again waits for the same end.
   */
  close(options: CloseOptions): Promise<readonly Job[]>
}

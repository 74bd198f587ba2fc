/**
 * Runs the handlers of the jobs that this process has claimed, renews their leases, records their outcomes, and releases the jobs when the
 * queue closes.
 */

import { isUint8Array } from 'node:util/types'
import { backoff } from '../kit/backoff.ts'
import type { Clock } from '../kit/clock.ts'
import { createSlots } from '../kit/slots.ts'
import { waitUnlessAborted } from '../kit/timeout.ts'
import { type Held, Leases, type ReportOptions } from './leases.ts'
import type { QueueStore } from './queue-store.ts'
import type {
  BeginTransaction,
  ClaimedJob,
  Complete,
  Completion,
  HandleJob,
  JobTransaction,
  Outcome,
} from './queue-types.ts'

export const STORE_BACKOFF = { firstMs: 500, maxMs: 30_000 } as const

const HANDLER_BACKOFF = { firstMs: 1_000, maxMs: 60_000 } as const

interface RunningOptions<Claim> extends ReportOptions {
  /**
   * Aborts when the grace period of a closing queue is over. All jobs share one signal, because creating a signal takes longer than all
   * other work for a job.
   */
  readonly signal: AbortSignal
  /** Called when a handler has ended, so that the next one may begin. */
  readonly onEnd: () => void
  /** Called when an outcome has been recorded, which may have made a job due. */
  readonly onRecorded: () => void
  /** Returns whether the call that completes a job may also claim the next job, which then takes the place of the completed one. */
  readonly mayClaimNext: () => boolean
  /** Receives the jobs that were claimed in the call that completed another job: at most one. */
  readonly onClaimed: (claims: readonly Claim[]) => Promise<void>
}

interface RunningJob<Claim> extends Held<Claim> {
  /** The claim, as its handler received it. */
  readonly job: ClaimedJob
  /** Whether a handler's transaction has completed the job. */
  isCommitted: boolean
  /**
   * Resolves to true when the outcome is recorded, or to false when the queue gives up recording it. Undefined until the
   * handler has ended, or if the outcome was recorded synchronously.
   */
  recording: Promise<boolean> | undefined
}

export class RunningJobs<Claim extends ClaimedJob> {
  readonly #store: QueueStore<Claim>
  readonly #begin: BeginTransaction | undefined
  readonly #finishAndClaim: QueueStore<Claim>['finishAndClaim']
  readonly #options: RunningOptions<Claim>
  readonly #jobs = createSlots<RunningJob<Claim>>()
  readonly #leases: Leases<Claim> | undefined
  #handling = 0
  #isClosed = false

  constructor(store: QueueStore<Claim>, options: RunningOptions<Claim>) {
    this.#store = store
    const begin = store.begin?.bind(store)
    this.#begin = begin && (async (timeoutMs) => this.#completing(await begin(timeoutMs)))
    this.#finishAndClaim = store.finishAndClaim?.bind(store)
    this.#options = options
    if (store.leaseMs !== undefined) this.#leases = new Leases(store, store.leaseMs, this.#jobs.list, options)
  }

  /** How many jobs this process has claimed. */
  get size(): number {
    return this.#jobs.size
  }

  /**
   * How many of the jobs count towards `concurrency`. These are the jobs whose handlers run, and the jobs that are being completed in a
   * call that also claims the next job.
   */
  get handling(): number {
    return this.#handling
  }

  start(claims: readonly Claim[], handle: HandleJob): void {
    this.#handling += claims.length
    for (const claim of claims) void this.#runOne(claim, handle)
    if (claims.length > 0) this.#leases?.start()
  }

  /** Waits for the outcomes that are being recorded, and releases the jobs whose outcomes were not recorded. */
  async close(): Promise<void> {
    this.#isClosed = true
    const left = this.#jobs.list()
    const areRecorded = await Promise.all(left.map(({ recording }) => recording))
    await this.#leases?.close()
    const unrecorded = left.filter((_, index) => areRecorded[index] !== true).map(({ claim }) => claim)
    if (unrecorded.length === 0) return
    try {
      await this.#store.release(unrecorded, { wereHandled: true })
    } catch (error) {
      this.#options.onError(error) // The claims that were not released end with their leases or, without leases, with this process.
    }
  }

  /**
   * Runs a handler and records its outcome. If the store answers without promises, everything except the handler runs
   * synchronously, because only promises are awaited.
   */
  async #runOne(claim: Claim, handle: HandleJob): Promise<void> {
    const { clock, signal, onRecorded } = this.#options
    const blockedMs = this.#leases?.blockedMsOf(claim.id)
    const job = blockedMs === undefined ? claim : { ...claim, blockedMs }
    const since = clock.monotonic()
    const running: RunningJob<Claim> = { claim, job, since, isCommitted: false, recording: undefined }
    const slot = this.#jobs.add(running)
    let { retryState } = job
    let saving: Promise<void> | undefined
    let hasEnded = false
    const save = async (state: Uint8Array): Promise<void> => {
      if (hasEnded) return
      retryState = state
      saving = this.#saveAfter(saving, claim, state)
      await saving
    }
    let result: unknown
    try {
      result = await handle(job, signal, save, this.#begin)
    } catch {
      // The handler reports its own errors.
    }
    hasEnded = true
    if (saving !== undefined) await saving // The outcome must be recorded after the saved state, which it replaces.
    if (this.#isClosed) return // `close` releases the job.
    running.recording = this.#endClaim(
      claim,
      running.isCommitted ? undefined : readOutcome(result, { ...job, retryState }, clock),
    )
    if (running.recording !== undefined && !(await running.recording)) return
    this.#jobs.remove(slot)
    if (this.#jobs.size === 0) this.#leases?.stop()
    onRecorded()
  }

  /** Wraps a transaction for handlers. The outcomes of jobs that the transaction completes are not recorded again when their handlers end. */
  #completing(transaction: JobTransaction<Claim>): JobTransaction {
    const commit = async (completions: readonly Completion[]): Promise<void> => {
      const runningByJob = new Map(this.#jobs.list().map((running) => [running.job, running]))
      const ended = completions.flatMap(({ claim, log }) => {
        const running = runningByJob.get(claim)
        return running === undefined ? [] : { running, claim: running.claim, log }
      })
      await transaction.commit(ended)
      for (const { running } of ended) running.isCommitted = true
    }
    return { ...transaction, commit }
  }

  /** Stores a retry state after the previous one has been stored, so that the latest retry state is kept. */
  async #saveAfter(before: Promise<void> | undefined, claim: Claim, retryState: Uint8Array): Promise<void> {
    await before
    try {
      await this.#store.save(claim, retryState)
    } catch (error) {
      this.#options.onError(error)
    }
  }

  /**
   * Records an outcome, unless `outcome` is undefined because a handler's transaction has already recorded it. Resolves to whether the
   * outcome was recorded; returns undefined if it was recorded synchronously.
   */
  #endClaim(claim: Claim, outcome: Outcome | undefined): Promise<boolean> | undefined {
    const { onEnd, mayClaimNext } = this.#options
    if (this.#finishAndClaim !== undefined && outcome !== undefined && 'complete' in outcome && mayClaimNext()) {
      return this.#recordAndClaim(claim, outcome, this.#finishAndClaim)
    }
    this.#handling -= 1
    const recording = outcome && this.#record(claim, outcome)
    onEnd()
    return recording
  }

  /**
   * Records the outcome and claims the next job in one call of the store. If the call fails, only recording the outcome is
   * retried, and another job can already take the place of the completed one. Resolves to whether the outcome was recorded.
   */
  async #recordAndClaim(
    claim: Claim,
    outcome: Complete,
    finishAndClaim: NonNullable<QueueStore<Claim>['finishAndClaim']>,
  ): Promise<boolean> {
    let claims: readonly Claim[] = []
    let recordingAgain: Promise<boolean> | undefined
    try {
      claims = await finishAndClaim(claim, outcome)
    } catch (error) {
      recordingAgain = this.#recordAgain(claim, outcome, error)
    }
    this.#handling -= 1
    await this.#options.onClaimed(claims)
    return recordingAgain ?? true
  }

  #record(claim: Claim, outcome: Outcome): Promise<boolean> | undefined {
    try {
      return this.#store.finish(claim, outcome)?.then(
        () => true,
        (error: unknown) => this.#recordAgain(claim, outcome, error),
      )
    } catch (error) {
      return this.#recordAgain(claim, outcome, error)
    }
  }

  /**
   * Retries until the outcome is recorded. After the grace period of a closing queue, the next failure ends the retries, and the job is
   * released instead.
   */
  async #recordAgain(claim: Claim, outcome: Outcome, error: unknown): Promise<boolean> {
    const { clock, signal, onError } = this.#options
    onError(error)
    for (let failures = 1; ; failures += 1) {
      await waitUnlessAborted(backoff(failures, STORE_BACKOFF), clock, signal)
      try {
        await this.#store.finish(claim, outcome)
        return true
      } catch (again) {
        onError(again)
        if (signal.aborted) return false
      }
    }
  }
}

/** Returns the outcome that a handler returned. If it returned anything else, returns a retry with the same retry state. */
function readOutcome(result: unknown, { claimCount, retryState }: ClaimedJob, clock: Clock): Outcome {
  if (isOutcome(result)) return result
  const retryAt = new Date(clock.now() + backoff(claimCount, HANDLER_BACKOFF))
  return retryState === undefined ? { retryAt } : { retryAt, retryState }
}

function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null) return false
  if ('complete' in value) return value.complete === true
  if ('retryState' in value && value.retryState !== undefined && !isUint8Array(value.retryState)) return false
  if ('retryAt' in value) return value.retryAt instanceof Date && !Number.isNaN(value.retryAt.getTime())
  return 'deadLetter' in value && typeof value.deadLetter === 'string'
}

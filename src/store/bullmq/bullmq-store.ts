/** The store of a queue on BullMQ: the jobs are in Redis, and are claimed manually through a BullMQ worker that does not run by itself. */

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Job, type Worker } from 'bullmq'
import { createBatcher } from '../../kit/batcher.ts'
import { type Clock, unref } from '../../kit/clock.ts'
import type { QueueCounts } from '../health.ts'
import type { MarkStore, QueueStore } from '../queue-store.ts'
import type { QueueUse } from '../queue-types.ts'
import { Connection, type Engine, isRefusal, isReply, unlessRefused } from './bullmq-connection.ts'
import {
  type BulkJob,
  type BullmqClaim,
  dataWith,
  dueAtOf,
  failure,
  isOurs,
  progressWith,
  toBulkJob,
  toClaim,
  toDeadLetter,
} from './bullmq-job.ts'
import { keyOf } from './bullmq-keys.ts'
import { type BullmqLog, createLog } from './bullmq-log.ts'
import { createMarks } from './bullmq-marks.ts'
import type { BullmqSettings } from './bullmq-options.ts'
import { StoredJobs } from './bullmq-stored.ts'
import { createCheck } from './redis-server.ts'

type OnUnreadable = Parameters<QueueStore['claim']>[1]

const FOREIGN_REASON = 'Hookline did not write this job.'

/**
 * How long a handler runs before its claim is counted in Redis, in milliseconds. From then on, the claim counts even if the process dies.
 */
export const COUNT_AFTER_MS = 50

interface Push {
  readonly jobs: readonly BulkJob[]
  readonly since: number
}

interface Found {
  readonly job: Job
  readonly token: string
}

type Store = QueueStore<BullmqClaim>

export function createBullmqStore(settings: BullmqSettings, clock: Clock): Store {
  return new BullmqStore(settings, clock)
}

/** A store on BullMQ. Its methods are properties, so that the store can be wrapped by spreading it. */
class BullmqStore implements Store {
  readonly isDurable = true
  readonly leaseMs: number
  readonly place: string
  readonly log: BullmqLog
  readonly marks: MarkStore
  readonly #dedupeWindowMs: number
  readonly #clock: Clock
  readonly #connection: Connection
  readonly #stored: StoredJobs
  readonly #pushes = createBatcher<Push>({
    send: (batch) => this.#send(batch),
    weigh: ({ jobs }) => jobs.length,
    maxWeight: 500,
    concurrency: 4,
    isFaultOfItems: (error) => error instanceof Error && isReply(error.cause),
  })
  /** The claims whose outcomes are not recorded yet, keyed by the id of the job. */
  readonly #held = new Map<string, BullmqClaim>()
  /** The tokens of claims whose answers were lost. */
  readonly #lostTokens = new Set<string>()
  readonly #tokenPrefix = randomUUID()
  #tokens = 0
  /** Whether the last claim left no due jobs. Undefined once `nextDueAt` has used this value. */
  #isDrained: boolean | undefined
  /**
   * The maximum number of jobs that the next claim asks for: small after a claim that found few jobs, and doubled while claims find as many
   * as they ask for.
   */
  #nextLimit = 1
  #freedStalledAt = Number.NEGATIVE_INFINITY
  /** The timer after which long claims are counted. */
  #countTimer: unknown
  #reportUnreadable: OnUnreadable
  #limiter: Worker['opts']['limiter']

  constructor(settings: BullmqSettings, clock: Clock) {
    const { name, prefix, leaseMs, dedupeWindowMs } = settings
    this.leaseMs = leaseMs
    this.#dedupeWindowMs = dedupeWindowMs
    this.#clock = clock
    this.#connection = new Connection(settings, createCheck(settings))
    this.place = this.#connection.place
    this.log = createLog(this.#connection, keyOf(prefix, name), clock.now)
    this.marks = createMarks(this.#connection, keyOf(prefix, name))
    this.#stored = new StoredJobs(this.#connection, clock.now)
  }

  readonly reserve = (use: QueueUse): void => this.#connection.reserve(use)

  readonly push: Store['push'] = async (jobs) => {
    const now = this.#clock.now()
    const bulk = jobs.map((job) => toBulkJob(job, now, this.#dedupeWindowMs))
    await this.#pushes.add({ jobs: bulk, since: performance.now() })
    return undefined
  }

  readonly claim: Store['claim'] = (limit, onUnreadable) => {
    this.#reportUnreadable = onUnreadable
    return this.#call(async (engine) => {
      await this.#freeStalled(engine)
      await this.#releaseLost(engine)
      return this.#fetch(engine, Math.min(limit, this.#nextLimit))
    })
  }

  /**
   * Limits claims through BullMQ, which counts the claims of all processes in Redis. Each window of 1 second begins with its first claim.
   */
  readonly limit: NonNullable<Store['limit']> = (maxPerSecond) => {
    this.#limiter = { max: maxPerSecond, duration: 1_000 }
  }

  readonly save: Store['save'] = (claim, retryState) =>
    this.#whileHeld(claim, () => claim.job.updateData(dataWith(claim, retryState)))

  readonly finish: Store['finish'] = async (claim, outcome) => {
    const { job, token } = claim
    if ('complete' in outcome) {
      await this.#append(claim, outcome.log)
      await this.#call(() => unlessRefused(job.moveToCompleted(null, token, false))) // `false` means: do not claim the next job.
    } else if ('deadLetter' in outcome) {
      await this.#whileHeld(claim, async () => {
        // The progress is reset only if it counts a claim.
        const reset = claim.isCounted || claim.claimCount > 1 ? job.updateProgress({}) : undefined
        await Promise.all([job.updateData(dataWith(claim, outcome.retryState)), reset])
        await job.moveToFailed(failure(outcome.deadLetter), token)
      })
    } else {
      await this.#whileHeld(claim, async () => {
        const dueAt = Math.max(this.#clock.now(), outcome.retryAt.getTime())
        const update = job.updateData(dataWith(claim, outcome.retryState, dueAt))
        await Promise.all([update, this.#setProgress(claim, true)])
        await job.moveToDelayed(dueAt, token)
      })
    }
    this.#held.delete(claim.id)
  }

  /** Completes a job and claims the next one in a single call, with the same token, as BullMQ's own workers do. */
  readonly finishAndClaim: NonNullable<Store['finishAndClaim']> = async (claim, { log: note }) => {
    const { job, token } = claim
    await this.#append(claim, note)
    return this.#call(async ({ worker }) => {
      const result = await this.#noteIfLost(token, unlessRefused(job.moveToCompleted(null, token, true)))
      this.#held.delete(claim.id)
      const [data, id] = result ?? [] // The next job. Both are undefined if the claim has ended or no job is due.
      return data ? this.#readAll([{ job: Job.fromJSON(worker, data, id), token }]) : []
    })
  }

  readonly release: Store['release'] = async (claims, { wereHandled }) => {
    const miscounted = claims.filter(({ isCounted }) => isCounted !== wereHandled)
    await Promise.all(miscounted.map((claim) => this.#whileHeld(claim, () => this.#setProgress(claim, wereHandled))))
    const lastFirst = claims.toReversed() // Each job goes to the head of the waiting jobs, so the first job is released last.
    await this.#call(() => Promise.all(lastFirst.map(({ job, token }) => unlessRefused(job.moveToWait(token)))))
    for (const { id } of claims) this.#held.delete(id)
  }

  readonly renew: NonNullable<Store['renew']> = async (claims) => {
    const [ids, locks] = [claims.map(({ id }) => id), claims.map(({ token }) => token)]
    await this.#call(async (engine) => {
      await engine.worker.extendJobLocks(ids, locks, this.leaseMs)
      // `claim` does the same, but is not called while each completion claims the next job.
      await this.#freeStalled(engine)
    })
  }

  /**
   * Does not report jobs that come due later: each claim makes BullMQ move the jobs that have come due, and the queue claims every
   * `pollMs`.
   */
  readonly nextDueAt: Store['nextDueAt'] = async () => {
    const wasDrained = this.#isDrained
    this.#isDrained = undefined
    if (wasDrained === undefined) return (await this.counts()).oldestDueAt
    return wasDrained ? undefined : new Date(0)
  }

  readonly onChange = (listener: () => void): void => this.#connection.onPush(listener)

  /**
   * Does not count `retrying`, because BullMQ does not distinguish a retry from other delayed jobs or, once it is due, from other waiting
   * jobs.
   */
  readonly counts = (): Promise<QueueCounts> =>
    this.#call(async ({ queue }) => {
      const [found, waiting, delayed] = await Promise.all([
        queue.getJobCounts('wait', 'prioritized', 'delayed', 'active', 'failed'),
        queue.getJobs('wait', 0, 0, true),
        queue.getJobs('delayed', 0, 0, true),
      ])
      const { wait = 0, prioritized = 0, delayed: later = 0, active = 0, failed: deadLetters = 0 } = found
      const now = this.#clock.now()
      const due = [...waiting, ...delayed].map(dueAtOf).filter((at) => at <= now)
      const oldestDueAt = due.length === 0 ? undefined : new Date(Math.min(...due))
      return { waiting: wait + prioritized + later, active, deadLetters, oldestDueAt, asOf: new Date(now) }
    })

  readonly deadLetters: Store['deadLetters'] = (page) => this.#stored.deadLetters(page)
  readonly redrive: Store['redrive'] = (ids) => this.#stored.redrive(ids)
  readonly drop: Store['drop'] = (ids) => this.#stored.drop(ids)
  readonly rewrite: NonNullable<Store['rewrite']> = (letters) => this.#stored.rewrite(letters)
  readonly jobs: Store['jobs'] = () => this.#stored.jobs()
  readonly remove: Store['remove'] = (ids) => this.#stored.remove(ids)

  readonly close: Store['close'] = async () => {
    this.#clock.clearTimeout(this.#countTimer)
    this.#held.clear()
    await this.#connection.close()
    return []
  }

  #call<T>(make: (engine: Engine) => Promise<T>, since?: number): Promise<T> {
    return this.#connection.call(make, since)
  }

  async #send(batch: readonly Push[]): Promise<void> {
    const jobs = batch.flatMap((push) => push.jobs)
    await this.#call(({ queue }) => queue.addBulk(jobs), batch[0]?.since)
    this.#connection.announcePush()
  }

  /** Makes jobs with expired leases wait again. Does so at most four times per lease. */
  async #freeStalled({ worker }: Engine): Promise<void> {
    const now = this.#clock.monotonic()
    if (now - this.#freedStalledAt < this.leaseMs / 4) return
    await worker.getBackend().moveStalledJobsToWait()
    this.#freedStalledAt = now
  }

  /**
   * Releases the jobs of claims whose answers were lost. No handler saw these jobs. Tries every token on every job, which is safe because
   * BullMQ refuses a wrong token.
   */
  async #releaseLost({ queue, worker }: Engine): Promise<void> {
    if (this.#lostTokens.size === 0) return
    const lost = [...this.#lostTokens]
    const jobs = (await queue.getActive()).filter(
      ({ id = '', processedBy }) => processedBy === worker.opts.name && !this.#held.has(id),
    )
    const releasing = jobs.flatMap((job) => lost.map((token) => unlessRefused(job.moveToWait(token))))
    await Promise.all(releasing)
    for (const token of lost) this.#lostTokens.delete(token)
  }

  /** Claims jobs with one command for each job, all in one round trip. */
  async #fetch({ worker }: Engine, limit: number): Promise<readonly BullmqClaim[]> {
    // The limit is set for each claim, because the connection may have opened another engine since the last claim.
    if (this.#limiter !== undefined) worker.opts.limiter = this.#limiter
    const answers = await Promise.allSettled(Array.from({ length: limit }, () => this.#fetchOne(worker)))
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? (answer.value ?? []) : []))
    this.#isDrained = found.length < limit
    this.#nextLimit = this.#isDrained ? Math.max(1, found.length) : Math.max(this.#nextLimit, 2 * limit)
    const claims = await this.#readAll(found)
    const failed = answers.find((answer) => answer.status === 'rejected')
    if (claims.length === 0 && failed !== undefined) throw failed.reason
    return claims
  }

  async #fetchOne(worker: Worker): Promise<Found | undefined> {
    this.#tokens += 1
    const token = `${this.#tokenPrefix}:${this.#tokens}`
    // `block: false` means: do not wait until there is a job.
    const job = await this.#noteIfLost(token, worker.getNextJob(token, { block: false }))
    return job && { job, token }
  }

  /**
   * Remembers the token of a claim whose answer was lost. An error from Redis or BullMQ is an answer, and so is a SyntaxError, which means
   * that the job arrived but its data is not JSON.
   */
  async #noteIfLost<T>(token: string, claimed: Promise<T>): Promise<T> {
    try {
      return await claimed
    } catch (error) {
      if (!isRefusal(error) && !isReply(error) && !(error instanceof SyntaxError)) this.#lostTokens.add(token)
      throw error
    }
  }

  /** Converts the jobs that were found to claims. Jobs that Hookline did not write become dead letters. */
  async #readAll(found: readonly Found[]): Promise<readonly BullmqClaim[]> {
    const claims = found.flatMap(({ job, token }) => toClaim(job, token, this.#clock.monotonic()) ?? [])
    for (const claim of claims) this.#held.set(claim.id, claim)
    if (claims.length > 0) this.#countLater()
    if (claims.length < found.length) await Promise.all(found.map((job) => this.#removeForeign(job)))
    // If an earlier claim ended without an outcome, this claim is counted at its start. Otherwise, a job could crash
    // one process after the other, and none of its claims would count.
    const stalled = claims.filter(({ job }) => job.stalledCounter > 0)
    for (const claim of stalled) this.#count(claim)
    if (stalled.length > 0) await nextTurn() // Lets the commands be sent before the handlers run.
    return claims
  }

  async #removeForeign({ job, token }: Found): Promise<void> {
    if (isOurs(job)) return
    try {
      await job.moveToFailed(failure(FOREIGN_REASON), token)
      const failedAt = new Date(this.#clock.now())
      this.#reportUnreadable?.({ ...toDeadLetter(job), reason: FOREIGN_REASON, failedAt })
    } catch {
      // The claim will lapse, and the job will then be claimed again.
    }
  }

  /**
   * Counts a claim without waiting for the answer. If this method waited and the answer was lost, the claim would fail but still count,
   * although no handler saw the job.
   */
  #count(claim: BullmqClaim): void {
    this.#call(() => this.#setProgress(claim, true)).catch(() => {})
  }

  #countLater(): void {
    this.#countTimer ??= unref(this.#clock.setTimeout(() => this.#countLong(), COUNT_AFTER_MS))
  }

  /** Counts the claims whose handlers have run for {@link COUNT_AFTER_MS}. */
  #countLong(): void {
    const before = this.#clock.monotonic() - COUNT_AFTER_MS
    for (const claim of this.#held.values()) if (!claim.isCounted && claim.claimedAt <= before) this.#count(claim)
    this.#countTimer = undefined
    if (this.#held.size > 0) this.#countLater()
  }

  async #setProgress(claim: BullmqClaim, isCounted: boolean): Promise<void> {
    claim.isCounted = isCounted
    await claim.job.updateProgress(progressWith(claim, isCounted))
  }

  /**
   * Calls `act` unless the claim has ended. The lock is first extended by a full lease, because BullMQ checks the lock before it moves the
   * job, but not before it stores data.
   */
  async #whileHeld({ job, token }: BullmqClaim, act: () => Promise<unknown>): Promise<void> {
    await this.#call(async () => {
      if ((await job.extendLock(token, this.leaseMs)) === 1) await unlessRefused(act())
    })
  }

  /**
   * Appends a job to the log before the job is completed, so that no completed job is missing from the log. If the process dies in between,
   * the job is handled again, and is then in the log twice.
   */
  async #append(claim: BullmqClaim, note: Uint8Array | undefined): Promise<void> {
    if (note === undefined || claim.isLogged) return
    await this.log.append(claim.id, claim.body, note)
    claim.isLogged = true
  }
}

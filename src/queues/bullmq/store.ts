/** The store of a queue on BullMQ: jobs in Redis, claimed by hand through a worker that does not run by itself. */

import { randomUUID } from 'node:crypto'
import type { Job, Worker } from 'bullmq'
import { createBatcher } from '../../collections/batcher.ts'
import type { Clock } from '../../time/clock.ts'
import type { QueueCounts } from '../health.ts'
import type { QueueStore } from '../store.ts'
import { connect, type Engine, isRefusal, isReply } from './connection.ts'
import {
  type BulkJob,
  type BullmqClaim,
  complete,
  dueAtOf,
  fail,
  finishClaim,
  releaseClaim,
  saveState,
  toBulkJob,
  toClaim,
  toDeadLetter,
} from './job.ts'
import type { BullmqSettings } from './options.ts'
import { createCheck } from './server.ts'
import { createStored } from './stored.ts'

type OnUnreadable = Parameters<QueueStore['claim']>[1]

const FOREIGN_REASON = 'Hookline did not write this job.'

interface Push {
  readonly jobs: readonly BulkJob[]
  readonly since: number
}

export function createBullmqStore(settings: BullmqSettings, clock: Clock): QueueStore<BullmqClaim> {
  const { leaseMs, dedupeWindowMs } = settings
  const connection = connect(settings, createCheck(settings))
  const pushes = createBatcher<Push>({
    send,
    weigh: ({ jobs }) => jobs.length,
    maxWeight: 500,
    concurrency: 4,
    isFaultOfItems: (error) => error instanceof Error && isReply(error.cause),
  })
  const held = new Set<BullmqClaim>()
  const tokenPrefix = randomUUID()
  let tokens = 0
  let isDrained: boolean | undefined // As the last claim found it, until the next call of nextDueAt.
  let reach = 1 // How many jobs to ask for: an idle look costs one command.
  let freedAt = Number.NEGATIVE_INFINITY
  let reportUnreadable: OnUnreadable

  async function send(batch: readonly Push[]): Promise<void> {
    const jobs = batch.flatMap((push) => push.jobs)
    await connection.call(({ queue }) => queue.addBulk(jobs), batch[0]?.since)
  }

  async function freeStalled(): Promise<void> {
    const now = clock.monotonic()
    if (now - freedAt < leaseMs / 4) return
    await connection.call(({ worker }) => worker.getBackend().moveStalledJobsToWait())
    freedAt = now
  }

  /** Claims by a call. Jobs that it brings after the timeout are released. */
  async function claimBy(make: (engine: Engine) => Promise<readonly BullmqClaim[]>): Promise<readonly BullmqClaim[]> {
    let isAwaited = true
    async function makeInTime(engine: Engine): Promise<readonly BullmqClaim[]> {
      const claims = await make(engine)
      if (!isAwaited) await releaseAll(claims, false)
      return claims
    }
    try {
      const claims = await connection.call(makeInTime)
      for (const claim of claims) held.add(claim)
      const fresh = claims.filter(({ notes }) => notes.firstAt === undefined)
      if (fresh.length > 0) setImmediate(noteFirst, fresh)
      return claims
    } finally {
      isAwaited = false
    }
  }

  /** Asks for jobs in one round trip. */
  async function fetch({ worker }: Engine, count: number): Promise<readonly BullmqClaim[]> {
    const answers = await Promise.allSettled(Array.from({ length: count }, () => fetchOne(worker)))
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? (answer.value ?? []) : []))
    isDrained = found.length < count
    reach = isDrained ? Math.max(1, found.length) : Math.max(reach, 2 * count)
    const claims = found.filter((claim) => claim !== 'not ours')
    const failure = answers.find((answer) => answer.status === 'rejected')
    if (claims.length === 0 && failure !== undefined) throw failure.reason
    return claims
  }

  async function fetchOne(worker: Worker): Promise<BullmqClaim | 'not ours' | undefined> {
    tokens += 1
    const token = `${tokenPrefix}:${tokens}`
    const job = await worker.getNextJob(token, { block: false })
    return job && read(job, token)
  }

  async function read(job: Job, token: string): Promise<BullmqClaim | 'not ours'> {
    const claim = toClaim(job, token)
    if (claim !== undefined) return claim
    await fail(job, token, FOREIGN_REASON, {})
    reportUnreadable?.({ ...toDeadLetter(job), reason: FOREIGN_REASON, failedAt: new Date(clock.now()) })
    return 'not ours'
  }

  /** Keeps the first time of jobs that take longer than a turn, in case that their process dies. */
  function noteFirst(claims: readonly BullmqClaim[]): void {
    for (const claim of claims) {
      if (!held.has(claim)) continue
      const progress = { ...claim.notes, firstAt: claim.firstAt.getTime() }
      connection.call(() => claim.job.updateProgress(progress)).catch(() => {}) // It is missed after a crash only.
    }
  }

  async function releaseAll(claims: readonly BullmqClaim[], wereHandled: boolean): Promise<void> {
    const lastFirst = [...claims].reverse() // Each goes before the others.
    await Promise.all(lastFirst.map((claim) => end(claim, () => releaseClaim(claim, wereHandled))))
  }

  async function end(claim: BullmqClaim, make: () => Promise<void>): Promise<void> {
    held.delete(claim)
    await ifCurrent(make)
  }

  async function ifCurrent(make: () => Promise<void>): Promise<void> {
    try {
      await connection.call(make)
    } catch (error) {
      if (!isRefusal(error)) throw error
    }
  }

  /** Without `retrying`: BullMQ delays a retry as it delays a job for later, and counts a retry that is due with all that wait. */
  async function counts(): Promise<QueueCounts> {
    return connection.call(async ({ queue }) => {
      const [found, waiting, delayed] = await Promise.all([
        queue.getJobCounts('wait', 'prioritized', 'delayed', 'active', 'failed'),
        queue.getJobs('wait', 0, 0, true),
        queue.getJobs('delayed', 0, 0, true),
      ])
      const { wait = 0, prioritized = 0, delayed: later = 0, active = 0, failed: deadLetters = 0 } = found
      const now = clock.now()
      const due = [...waiting, ...delayed].map(dueAtOf).filter((at) => at <= now)
      const oldestDueAt = due.length === 0 ? undefined : new Date(Math.min(...due))
      return { waiting: wait + prioritized + later, active, deadLetters, oldestDueAt, asOf: new Date(now) }
    })
  }

  return {
    isDurable: true,
    leaseMs,
    place: connection.place,
    reserve: connection.reserve,
    async push(jobs) {
      const now = clock.now()
      const bulk = jobs.map((job) => toBulkJob(job, now, dedupeWindowMs))
      await pushes.add({ jobs: bulk, since: performance.now() })
      return undefined
    },
    async claim(limit, onUnreadable) {
      reportUnreadable = onUnreadable
      await freeStalled()
      return claimBy((engine) => fetch(engine, Math.min(limit, reach)))
    },
    save: (claim, retryState) => ifCurrent(() => saveState(claim, retryState)),
    finish: (claim, outcome) => end(claim, () => finishClaim(claim, outcome, clock.now())),
    async finishAndClaim(claim) {
      held.delete(claim)
      try {
        return await claimBy(async ({ worker }) => {
          const job = await complete(claim, worker)
          const next = job && (await read(job, claim.token))
          return next === undefined || next === 'not ours' ? [] : [next]
        })
      } catch (error) {
        if (!isRefusal(error)) throw error
        return []
      }
    },
    release: (claims, { wereHandled }) => releaseAll(claims, wereHandled),
    async renew(claims) {
      const ids = claims.map(({ id }) => id)
      const locks = claims.map(({ token }) => token)
      await connection.call(({ worker }) => worker.extendJobLocks(ids, locks, leaseMs))
      await freeStalled() // While each job that completes claims the next, nothing else is claimed.
    },
    /** The next look finds a job that comes due: a claim makes BullMQ move it. */
    async nextDueAt() {
      const wasDrained = isDrained
      isDrained = undefined
      if (wasDrained === undefined) return (await counts()).oldestDueAt
      if (!wasDrained) return new Date(0)
      void connection.waitForPush()
      return undefined
    },
    onChange: connection.onPush,
    counts,
    ...createStored(connection, clock.now),
    async close() {
      await connection.close()
      return []
    },
  }
}

/** The store of a queue on BullMQ: jobs in Redis, claimed by hand through a worker that does not run by itself. */

import { randomUUID } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Job, type Worker } from 'bullmq'
import { createBatcher } from '../../kit/batcher.ts'
import { type Clock, unref } from '../../kit/clock.ts'
import type { QueueCounts } from '../health.ts'
import type { QueueStore } from '../queue-store.ts'
import type { Outcome } from '../queue-types.ts'
import { connect, type Engine, isRefusal, isReply, keyOf, unlessRefused } from './bullmq-connection.ts'
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
import { createLog } from './bullmq-log.ts'
import type { BullmqSettings } from './bullmq-options.ts'
import { createStored } from './bullmq-stored.ts'
import { createCheck } from './redis-server.ts'

type OnUnreadable = Parameters<QueueStore['claim']>[1]

const FOREIGN_REASON = 'Hookline did not write this job.'

/** Jobs that take so long are counted as claimed while their handlers run, in case that their process dies. */
export const COUNT_AFTER_MS = 50

interface Push {
  readonly jobs: readonly BulkJob[]
  readonly since: number
}

interface Found {
  readonly job: Job
  readonly token: string
}

export function createBullmqStore(settings: BullmqSettings, clock: Clock): QueueStore<BullmqClaim> {
  const { leaseMs, dedupeWindowMs } = settings
  const connection = connect(settings, createCheck(settings))
  const { call } = connection
  const log = createLog(connection, keyOf(settings.prefix, settings.name), clock.now)
  const pushes = createBatcher<Push>({
    send,
    weigh: ({ jobs }) => jobs.length,
    maxWeight: 500,
    concurrency: 4,
    isFaultOfItems: (error) => error instanceof Error && isReply(error.cause),
  })
  const held = new Map<string, BullmqClaim>() // Until their ends are recorded.
  const lostTokens = new Set<string>() // Of claims whose answers did not come.
  const tokenPrefix = randomUUID()
  let tokens = 0
  let isDrained: boolean | undefined // As the last claim found it, until the next call of nextDueAt.
  let reach = 1 // How many jobs to ask for: an idle look costs one command.
  let freedAt = Number.NEGATIVE_INFINITY
  let counting: unknown
  let reportUnreadable: OnUnreadable

  async function send(batch: readonly Push[]): Promise<void> {
    const jobs = batch.flatMap((push) => push.jobs)
    await call(({ queue }) => queue.addBulk(jobs), batch[0]?.since)
    connection.announcePush()
  }

  async function freeStalled({ worker }: Engine): Promise<void> {
    const now = clock.monotonic()
    if (now - freedAt < leaseMs / 4) return
    await worker.getBackend().moveStalledJobsToWait()
    freedAt = now
  }

  /** Releases what was claimed by calls that were not answered. No handler saw it. */
  async function releaseLost({ queue, worker }: Engine): Promise<void> {
    if (lostTokens.size === 0) return
    const lost = [...lostTokens]
    const jobs = (await queue.getActive()).filter(
      ({ id = '', processedBy }) => processedBy === worker.opts.name && !held.has(id),
    )
    const releasing = jobs.flatMap((job) => lost.map((token) => unlessRefused(job.moveToWait(token))))
    await Promise.all(releasing)
    for (const token of lost) lostTokens.delete(token)
  }

  /** Asks for jobs in one round trip. */
  async function fetch({ worker }: Engine, most: number): Promise<readonly BullmqClaim[]> {
    const answers = await Promise.allSettled(Array.from({ length: most }, () => fetchOne(worker)))
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? (answer.value ?? []) : []))
    isDrained = found.length < most
    reach = isDrained ? Math.max(1, found.length) : Math.max(reach, 2 * most)
    const claims = await readAll(found)
    const failed = answers.find((answer) => answer.status === 'rejected')
    if (claims.length === 0 && failed !== undefined) throw failed.reason
    return claims
  }

  async function fetchOne(worker: Worker): Promise<Found | undefined> {
    tokens += 1
    const token = `${tokenPrefix}:${tokens}`
    const job = await unlessLost(token, worker.getNextJob(token, { block: false }))
    return job && { job, token }
  }

  async function unlessLost<T>(token: string, claimed: Promise<T>): Promise<T> {
    try {
      return await claimed
    } catch (error) {
      if (!isRefusal(error) && !isReply(error) && !(error instanceof SyntaxError)) lostTokens.add(token)
      throw error
    }
  }

  async function readAll(found: readonly Found[]): Promise<readonly BullmqClaim[]> {
    const claims = found.flatMap(({ job, token }) => toClaim(job, token, clock.monotonic()) ?? [])
    for (const claim of claims) held.set(claim.id, claim)
    if (claims.length > 0) counting ??= unref(clock.setTimeout(countLong, COUNT_AFTER_MS))
    if (claims.length < found.length) await Promise.all(found.map(removeForeign))
    // An earlier claim ended without an outcome: these count from their start, so that no job ends every process.
    const stalled = claims.filter(({ job }) => job.stalledCounter > 0)
    stalled.forEach(count)
    if (stalled.length > 0) await nextTurn() // It is sent then.
    return claims
  }

  async function removeForeign({ job, token }: Found): Promise<void> {
    if (isOurs(job)) return
    try {
      await job.moveToFailed(failure(FOREIGN_REASON), token)
      reportUnreadable?.({ ...toDeadLetter(job), reason: FOREIGN_REASON, failedAt: new Date(clock.now()) })
    } catch {
      // Its claim lapses, and it is claimed again.
    }
  }

  /** Is not waited for: an answer that is lost must not count a claim that no handler saw. */
  function count(claim: BullmqClaim): void {
    call(() => setProgress(claim, true)).catch(() => {})
  }

  function countLong(): void {
    const before = clock.monotonic() - COUNT_AFTER_MS
    for (const claim of held.values()) if (!claim.isCounted && claim.claimedAt <= before) count(claim)
    counting = held.size === 0 ? undefined : unref(clock.setTimeout(countLong, COUNT_AFTER_MS))
  }

  async function setProgress(claim: BullmqClaim, isCounted: boolean): Promise<void> {
    claim.isCounted = isCounted
    await claim.job.updateProgress(progressWith(claim, isCounted))
  }

  /** BullMQ moves a job under its lock, but stores without it: a whole lease is time enough for both. */
  async function whileHeld(claim: BullmqClaim, act: () => Promise<unknown>): Promise<void> {
    await call(async () => {
      if ((await claim.job.extendLock(claim.token, leaseMs)) === 1) await unlessRefused(act())
    })
  }

  /** First: a job that is complete and not in the log would be missed. One whose process dies before it is complete is there twice. */
  async function append(claim: BullmqClaim, note: Uint8Array | undefined): Promise<void> {
    if (note === undefined || claim.isLogged) return
    await log.append(claim.id, claim.body, note)
    claim.isLogged = true
  }

  async function finish(claim: BullmqClaim, outcome: Outcome): Promise<void> {
    const { job, token } = claim
    if ('complete' in outcome) {
      await append(claim, outcome.log)
      await call(() => unlessRefused(job.moveToCompleted(null, token, false)))
    } else if ('deadLetter' in outcome) {
      await whileHeld(claim, async () => {
        const reset = claim.isCounted || claim.claimCount > 1 ? job.updateProgress({}) : undefined
        await Promise.all([job.updateData(dataWith(claim, outcome.retryState)), reset])
        await job.moveToFailed(failure(outcome.deadLetter), token)
      })
    } else {
      await whileHeld(claim, async () => {
        const dueAt = Math.max(clock.now(), outcome.retryAt.getTime())
        await Promise.all([job.updateData(dataWith(claim, outcome.retryState, dueAt)), setProgress(claim, true)])
        await job.moveToDelayed(dueAt, token)
      })
    }
    held.delete(claim.id)
  }

  /** Without `retrying`: BullMQ delays a retry as it delays a job for later, and counts a retry that is due with all that wait. */
  async function counts(): Promise<QueueCounts> {
    return call(async ({ queue }) => {
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
      await pushes.add({ jobs: jobs.map((job) => toBulkJob(job, now, dedupeWindowMs)), since: performance.now() })
      return undefined
    },
    claim(limit, onUnreadable) {
      reportUnreadable = onUnreadable
      return call(async (engine) => {
        await freeStalled(engine)
        await releaseLost(engine)
        return fetch(engine, Math.min(limit, reach))
      })
    },
    save: (claim, retryState) => whileHeld(claim, () => claim.job.updateData(dataWith(claim, retryState))),
    finish,
    /** As BullMQ's own workers do: the call that completes a job claims the next, under the same token. */
    async finishAndClaim(claim, { log: note }) {
      const { job, token } = claim
      await append(claim, note)
      return call(async ({ worker }) => {
        const answer = await unlessLost(token, unlessRefused(job.moveToCompleted(null, token, true)))
        held.delete(claim.id)
        const [data, id] = answer ?? []
        return data ? readAll([{ job: Job.fromJSON(worker, data, id), token }]) : []
      })
    },
    async release(claims, { wereHandled }) {
      const counted = claims.filter(({ isCounted }) => isCounted !== wereHandled)
      await Promise.all(counted.map((claim) => whileHeld(claim, () => setProgress(claim, wereHandled))))
      const lastFirst = [...claims].reverse() // Each goes before the others.
      await call(() => Promise.all(lastFirst.map(({ job, token }) => unlessRefused(job.moveToWait(token)))))
      for (const { id } of claims) held.delete(id)
    },
    async renew(claims) {
      const [ids, locks] = [claims.map(({ id }) => id), claims.map(({ token }) => token)]
      await call(async (engine) => {
        await engine.worker.extendJobLocks(ids, locks, leaseMs)
        await freeStalled(engine) // While each job that completes claims the next, nothing else is claimed.
      })
    },
    /** The next look finds a job that comes due: a claim makes BullMQ move it. */
    async nextDueAt() {
      const wasDrained = isDrained
      isDrained = undefined
      if (wasDrained === undefined) return (await counts()).oldestDueAt
      return wasDrained ? undefined : new Date(0)
    },
    onChange: connection.onPush,
    counts,
    ...createStored(connection, clock.now),
    log,
    async close() {
      clock.clearTimeout(counting)
      held.clear()
      await connection.close()
      return []
    },
  }
}

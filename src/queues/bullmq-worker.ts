/** Works on a queue: BullMQ claims, locks and settles; what became of a job is told to it here. */

import { DelayedError, type Job, type JobJson, UnrecoverableError, WaitingError, Worker } from 'bullmq'
import type { Clock } from '../protocol/clock.ts'
import { connectToWork } from './bullmq-connection.ts'
import { discountLocked, noteLocked } from './bullmq-fence.ts'
import { encode, type Memo, readMemo, toClaimed } from './bullmq-job.ts'
import type { BullmqSettings } from './bullmq-options.ts'
import { handleJob } from './handle-job.ts'
import { createPatience } from './patience.ts'
import type { ClaimedJob, CloseOptions, HandleJob, Outcome } from './queue.ts'

/** What works. */
export interface Crew {
  /** Resolves when a moment comes in which nothing is handed out here. */
  idle(): Promise<void>
  /** Hands out nothing more, and gives back what still runs when the grace is over. */
  close(options: CloseOptions): Promise<void>
}

/** Begins to work. */
export function startWork(handle: HandleJob, concurrency: number, settings: BullmqSettings, clock: Clock): Crew {
  const { name, prefix, leaseMs, knownForMs, commandTimeoutMs, onError } = settings
  const connection = connectToWork(settings)
  const ending = new AbortController()
  const patience = createPatience(clock, ending.signal)
  const leaving = new Set<() => void>()
  const fresh = new Map<Job, { readonly token: string; readonly firstAt: number }>()
  const running = new Set<Promise<unknown>>()
  const finished: string[] = []
  let stripped: Promise<unknown> | undefined
  let isOpen = true
  let quiet = Promise.withResolvers<void>()

  async function process(job: Job, token = ''): Promise<void> {
    if (!isOpen) return giveBack(job, token, false)
    const claimed = toClaimed(job)
    if (claimed === undefined) return setAside(job)
    remember(job, token, claimed)
    const outcome = await waitFor(handleJob(handle, claimed, ending.signal, clock))
    fresh.delete(job)
    if (outcome === undefined) return giveBack(job, token, true)
    await settle(job, token, claimed, outcome)
  }

  /** Undefined when closing does not wait for it any longer. */
  async function waitFor(outcome: Promise<Outcome>): Promise<Outcome | undefined> {
    const { promise, resolve } = Promise.withResolvers<Outcome | undefined>()
    const leave = () => resolve(undefined)
    leaving.add(leave)
    outcome.then(resolve)
    const settled = await promise
    leaving.delete(leave)
    return settled
  }

  /** What somebody else put there: in a form that can be read again. */
  async function setAside(job: Job): Promise<never> {
    await job.updateData(job.data)
    throw death('This is no job that the queue was given.')
  }

  async function settle(job: Job, token: string, claimed: ClaimedJob, outcome: Outcome): Promise<void> {
    if ('done' in outcome) return
    if ('retryAt' in outcome) {
      const dueAt = Math.max(clock.now(), Math.ceil(outcome.retryAt))
      await letGo(() =>
        Promise.all([note(job, token, { ...memoOf(claimed, outcome), dueAt }), job.moveToDelayed(dueAt, token)]),
      )
      throw new DelayedError()
    } else {
      const diedAt = performance.timeOrigin + performance.now()
      note(job, token, { ...memoOf(claimed, outcome), diedAt }).catch(onError) // Goes before what comes next.
      throw death(outcome.dead)
    }
  }

  /** One that no handler saw goes back uncounted: the inbox takes a delivery without an end for a crash. */
  async function giveBack(job: Job, token: string, wasSeen: boolean): Promise<never> {
    await letGo(async () => {
      if (!wasSeen) await discountLocked(connection.client, keyOf(job), token)
      await job.moveToWait(token)
    })
    throw new WaitingError()
  }

  /** Kept beside the body until the next time. */
  function note(job: Job, token: string, memo: Memo): Promise<void> {
    return noteLocked(connection.client, keyOf(job), token, memo)
  }

  function keyOf({ id }: Job): string {
    return worker.toKey(String(id))
  }

  /** Lets the worker go on when a job is no longer this one's: its lease is over, and it is handed out elsewhere. */
  async function letGo(move: () => Promise<unknown>): Promise<void> {
    try {
      await move()
    } catch (error) {
      onError(error)
    }
  }

  /** When it was handed out first is kept for those that take longer than a turn; the others are done before. */
  function remember(job: Job, token: string, { deliveries, firstAt }: ClaimedJob): void {
    if (deliveries > 1 && readMemo(job).firstAt === firstAt) return
    if (fresh.size === 0) setImmediate(noteFresh)
    fresh.set(job, { token, firstAt })
  }

  function noteFresh(): void {
    for (const [job, { token, firstAt }] of fresh) note(job, token, { ...readMemo(job), firstAt }).catch(onError)
    fresh.clear()
  }

  class Hands extends Worker {
    override async processJob(job: Job, token: string, fetchNext?: () => boolean): Promise<undefined | Job> {
      const processed = super.processJob(job, token, fetchNext)
      running.add(processed)
      try {
        return (await processed) as undefined | Job
      } finally {
        running.delete(processed)
        if (running.size === 0) release()
      }
    }

    /** What BullMQ leaves out when Redis goes away in mid-close, and would keep the process. */
    renewNoMore(): Promise<void> {
      return this.lockManager.close()
    }

    protected override async moveToActive(token: string, name?: string): Promise<Job> {
      // BullMQ asks once more after its wait is over, when it is to stop, too.
      return isOpen ? super.moveToActive(token, name) : (undefined as unknown as Job)
    }

    protected override createJob(json: JobJson, id: string): Job {
      try {
        return super.createJob(json, id)
      } catch {
        return super.createJob({ ...json, data: JSON.stringify({ unreadable: json.data }) }, id)
      }
    }
  }

  /** Of jobs that are done the ids are kept. BullMQ would keep the bodies, too. */
  function strip({ id = '' }: Job): void {
    if (finished.length === 0) setImmediate(stripAll)
    finished.push(id)
  }

  function stripAll(): void {
    if (finished.length === 0) return
    const changes = connection.client.multi()
    for (const id of finished.splice(0)) changes.del(worker.toKey(id)).hset(worker.toKey(id), 'data', '""')
    stripped = changes.exec().catch(onError)
  }

  function release(): void {
    quiet.resolve()
    quiet = Promise.withResolvers()
  }

  const worker = new Hands(name, process, {
    connection: connection.client,
    prefix,
    concurrency,
    lockDuration: leaseMs,
    stalledInterval: Math.ceil(leaseMs / 2),
    maxStalledCount: Number.MAX_SAFE_INTEGER, // The handler says how often is too often.
    removeOnComplete: { age: Math.ceil(knownForMs / 1000) },
    runRetryDelay: RETRY_MS,
  })
  worker.on('error', onError)
  worker.on('completed', strip)

  return {
    idle: () => quiet.promise,
    async close({ graceMs }) {
      isOpen = false
      worker.pause(true).catch(onError)
      const stopped = connection.stopWaiting()
      if (running.size > 0 && graceMs > 0) await patience.waitFor(Promise.allSettled(running), graceMs)
      ending.abort()
      if (running.size > 0) await new Promise((resolve) => setImmediate(resolve)) // For those that obey the signal.
      await patience.waitFor(stopped, commandTimeoutMs)
      for (const leave of leaving) leave()
      const isThere = connection.client.status === 'ready'
      const end = async () => {
        await Promise.allSettled(running)
        stripAll()
        await stripped
        await worker.close()
      }
      if (isThere) await patience.waitFor(end(), commandTimeoutMs)
      await patience.waitFor(worker.close(true), commandTimeoutMs)
      await worker.renewNoMore()
      connection.end()
      release()
    },
  }
}

function memoOf({ firstAt }: ClaimedJob, { state }: { readonly state?: Uint8Array }): Memo {
  return state === undefined ? { firstAt } : { firstAt, state: encode(state) }
}

/** Without a stack, which BullMQ would keep. */
function death(reason: string): Error {
  const error = new UnrecoverableError(reason)
  error.stack = ''
  return error
}

const RETRY_MS = 1_000

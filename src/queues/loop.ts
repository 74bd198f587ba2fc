/** The loop that queues share: hands out what is due, so many at a time, and ends in good order. */

import type { Clock } from '../protocol/clock.ts'
import { requireFunction, requireWhole } from '../protocol/options.ts'
import { createAlarm } from './alarm.ts'
import { handleJob } from './handle-job.ts'
import { createPatience } from './patience.ts'
import type { ClaimedJob, CloseOptions, HandleJob, Outcome, Queue } from './queue.ts'

/**
 * Where an engine keeps its jobs. Calls that are synchronous cost no turn. A call that throws or rejects is made again
 * later, so it must be one that can be; none may take for ever.
 */
export interface Store {
  /** Takes jobs that are due, at most so many, the longest due first. */
  claim(limit: number): readonly ClaimedJob[] | Promise<readonly ClaimedJob[]>
  /** Carries out what became of a job that was claimed. */
  settle(job: ClaimedJob, outcome: Outcome): void | Promise<void>
  /**
   * Gives back jobs that were claimed: they are due at once, for whoever works elsewhere. Where no handler saw them, it is
   * as if they had not been claimed: that delivery does not count.
   */
  release(jobs: readonly ClaimedJob[], how: Release): void | Promise<void>
  /** When the next job to claim is due, in milliseconds since the epoch; undefined when none waits. */
  nextAt(): number | undefined | Promise<number | undefined>
}

/** How jobs are given back. */
export interface Release {
  /** Whether a handler was called with them. */
  readonly wereSeen: boolean
}

/** How to go round. */
export interface LoopOptions {
  readonly clock: Clock
  /** Whether closing goes on with what is due, because it would be lost with the process. */
  readonly finishesDue: boolean
  /** How often to look for jobs that another process put in, in milliseconds. Default: never. */
  readonly pollMs?: number
  /** Sees why a call of the store failed. Default: nobody does. */
  readonly onError?: (error: unknown) => void
}

/** The part of a queue that works. */
export interface Loop extends Pick<Queue, 'work' | 'drain'> {
  /** Looks for jobs: there may be new ones, or sooner ones. */
  wake(): void
  /** Ends. Every outcome that comes later is ignored: the store may give away what is left. */
  close(options: CloseOptions): Promise<void>
}

/** Makes a loop over a store. */
export function createLoop(store: Store, { clock, finishesDue, pollMs, onError }: LoopOptions): Loop {
  const alarm = createAlarm(clock, wake)
  const ending = new AbortController() // One for all jobs: to make one costs more than the rest of the loop.
  const patience = createPatience(clock, ending.signal)
  const running = new Set<ClaimedJob>()
  /** Calls of the store that closing waits for. */
  const calls = new Set<Promise<unknown>>()
  let handle: HandleJob | undefined
  let concurrency = 0
  let phase: 'open' | 'closing' | 'closed' = 'open'
  let active = 0
  let looking = false
  let missed = false
  let handedOut = 0
  let failures = 0
  let waiting: (() => void)[] = []

  function wake(): void {
    if (looking) {
      missed = true
    } else if (phase !== 'closed') {
      looking = true
      if (handedOut < TURN) queueMicrotask(look)
      else setImmediate(lookInNewTurn)
    }
  }

  function lookInNewTurn(): void {
    handedOut = 0
    void look()
  }

  /** Awaits only what is a promise: with a synchronous store it runs through. */
  async function look(): Promise<void> {
    missed = false
    let nextAt: number | undefined
    let isKnown = true
    try {
      const limit = isClaiming() ? concurrency - active : 0
      if (limit > 0) {
        const claim = store.claim(limit)
        handOut(claim instanceof Promise ? await track(claim.then(giveBackLate)) : claim)
      }
      if (isClaiming() && (handle === undefined ? waiting.length > 0 : active < concurrency)) {
        const next = store.nextAt()
        nextAt = next instanceof Promise ? await next : next
      }
      failures = 0
    } catch (error) {
      onError?.(error)
      isKnown = false
      nextAt = clock.now() + patience.delayAfter(failures)
      failures += 1
    }
    looking = false
    if (missed) wake()
    else rest(nextAt, isKnown)
  }

  function isClaiming(): boolean {
    return phase === 'open' || (phase === 'closing' && finishesDue && handle !== undefined && !ending.signal.aborted)
  }

  /** What a claim brings after the end goes back: nobody saw it. */
  async function giveBackLate(jobs: readonly ClaimedJob[]): Promise<readonly ClaimedJob[]> {
    if (phase !== 'closed' || jobs.length === 0) return jobs
    await store.release(jobs, { wereSeen: false })
    return []
  }

  function handOut(jobs: readonly ClaimedJob[]): void {
    handedOut += jobs.length
    active += jobs.length
    for (const job of jobs) void run(job)
  }

  async function run(job: ClaimedJob): Promise<void> {
    running.add(job)
    const outcome = await handleJob(handle as HandleJob, job, ending.signal, clock) // Nothing is claimed without it.
    if (phase === 'closed') return
    running.delete(job)
    const settled = settle(job, outcome)
    if (settled !== undefined) await track(settled)
    active -= 1
    wake()
  }

  function settle(job: ClaimedJob, outcome: Outcome): Promise<void> | undefined {
    try {
      const settled = store.settle(job, outcome)
      return settled?.catch((error: unknown) => settleLater(job, outcome, error))
    } catch (error) {
      return settleLater(job, outcome, error)
    }
  }

  /** Until it works, or the queue is closed: the lease ends by itself then, and the job is handed out again. */
  async function settleLater(job: ClaimedJob, outcome: Outcome, error: unknown): Promise<void> {
    onError?.(error)
    for (let attempts = 0; ; attempts += 1) {
      await patience.wait(attempts)
      try {
        return await store.settle(job, outcome)
      } catch (again) {
        onError?.(again)
        if (ending.signal.aborted) return
      }
    }
  }

  async function track<T>(call: Promise<T>): Promise<T> {
    calls.add(call)
    try {
      return await call
    } finally {
      calls.delete(call)
    }
  }

  /** Nothing changed since the store was asked, so this is how it stands, unless it did not say. */
  function rest(nextAt: number | undefined, isKnown: boolean): void {
    const next = isClaiming() ? nextAt : undefined
    if (isKnown && active === 0 && !(next !== undefined && next <= clock.now())) release()
    if (isKnown && handle === undefined) watch()
    else if (active < concurrency || !isKnown) alarm.set(isClaiming() ? soonest(next) : next)
  }

  /** Another process may work on what somebody here waits for. */
  function watch(): void {
    if (pollMs !== undefined && waiting.length > 0) alarm.set(clock.now() + pollMs)
  }

  /** Another process may put jobs in that nobody tells of. */
  function soonest(next: number | undefined): number | undefined {
    if (pollMs === undefined) return next
    return Math.min(next ?? Number.POSITIVE_INFINITY, clock.now() + pollMs)
  }

  function release(): void {
    for (const resolve of waiting) resolve()
    waiting = []
  }

  function drain(): Promise<void> {
    if (phase === 'closed') return Promise.resolve()
    wake()
    return new Promise((resolve) => waiting.push(resolve))
  }

  async function giveBack(): Promise<void> {
    if (calls.size > 0) await Promise.allSettled(calls)
    try {
      if (running.size > 0) await store.release([...running], { wereSeen: true })
    } catch (error) {
      onError?.(error) // Their leases end by themselves.
    }
  }

  return {
    wake,
    drain,
    work(handler, options) {
      if (handle !== undefined)
        throw new TypeError('work: somebody works on this queue already. Make one for each use.')
      if (phase !== 'open') throw new TypeError('work: the queue is closed. Make a new one.')
      requireFunction('handle', handler)
      concurrency = requireWhole('concurrency', options?.concurrency, 1)
      handle = handler
      wake()
    },
    async close({ graceMs }) {
      phase = 'closing'
      if (graceMs > 0) await patience.waitFor(drain(), graceMs)
      ending.abort()
      if (active > 0) await new Promise((resolve) => setImmediate(resolve)) // For those that obey the signal.
      phase = 'closed'
      alarm.set(undefined)
      release()
      await giveBack()
    },
  }
}

/** Hand-outs until everything else in the process has its turn. */
const TURN = 256

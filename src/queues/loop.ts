/** The loop that queues share: hands out what is due, so many at a time, and ends in good order. */

import type { Clock } from '../protocol/clock.ts'
import { requireFunction, requireWhole } from '../protocol/options.ts'
import { createAlarm } from './alarm.ts'
import { handleJob } from './handle-job.ts'
import type { ClaimedJob, CloseOptions, HandleJob, Outcome, Queue } from './queue.ts'

/**
 * Where an engine keeps its jobs. Calls that are synchronous cost no turn. None of them fails: a store whose engine is
 * away claims nothing, tries again by itself and wakes the loop.
 */
export interface Store {
  /** Takes jobs that are due, at most so many, the longest due first. */
  claim(limit: number): readonly ClaimedJob[] | Promise<readonly ClaimedJob[]>
  /** Carries out what became of a job that was claimed. */
  settle(job: ClaimedJob, outcome: Outcome): void | Promise<void>
  /** When the next job to claim is due, in milliseconds since the epoch; undefined when none waits. */
  nextAt(): number | undefined | Promise<number | undefined>
}

/** How to go round. */
export interface LoopOptions {
  readonly clock: Clock
  /** Whether closing goes on with what is due, because it would be lost with the process. */
  readonly finishesDue: boolean
}

/** The part of a queue that works. */
export interface Loop extends Pick<Queue, 'work' | 'drain'> {
  /** Looks for jobs: there may be new ones, or sooner ones. */
  wake(): void
  /** Ends. Every outcome that comes later is ignored: the store may give away what is left. */
  close(options: CloseOptions): Promise<void>
}

/** Makes a loop over a store. */
export function createLoop(store: Store, { clock, finishesDue }: LoopOptions): Loop {
  const alarm = createAlarm(clock, wake)
  const ending = new AbortController() // One for all jobs: to make one costs more than the rest of the loop.
  let handle: HandleJob | undefined
  let concurrency = 0
  let phase: 'open' | 'closing' | 'closed' = 'open'
  let active = 0
  let looking = false
  let missed = false
  let handedOut = 0
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
    const limit = isClaiming() ? concurrency - active : 0
    if (limit > 0) {
      const claim = store.claim(limit)
      handOut(claim instanceof Promise ? await claim : claim)
    }
    const next = store.nextAt()
    const nextAt = next instanceof Promise ? await next : next
    looking = false
    if (missed) wake()
    else rest(nextAt)
  }

  function isClaiming(): boolean {
    return phase === 'open' || (phase === 'closing' && finishesDue && handle !== undefined && !ending.signal.aborted)
  }

  function handOut(jobs: readonly ClaimedJob[]): void {
    if (phase === 'closed') return // It was claimed too late, and is the store's to give away.
    handedOut += jobs.length
    active += jobs.length
    for (const job of jobs) void run(job)
  }

  async function run(job: ClaimedJob): Promise<void> {
    const outcome = await handleJob(handle as HandleJob, job, ending.signal, clock) // Nothing is claimed without it.
    if (phase === 'closed') return
    const settled = store.settle(job, outcome)
    if (settled instanceof Promise) await settled
    active -= 1
    wake()
  }

  /** Nothing changed since the store was asked, so this is how it stands. */
  function rest(nextAt: number | undefined): void {
    const next = isClaiming() ? nextAt : undefined
    if (active === 0 && !(next !== undefined && next <= clock.now())) release()
    if (active < concurrency) alarm.set(next)
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

  async function waitForGrace(graceMs: number): Promise<void> {
    let timer: unknown
    const over = new Promise<void>((resolve) => {
      timer = clock.setTimeout(resolve, graceMs)
    })
    await Promise.race([drain(), over])
    clock.clearTimeout(timer)
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
      if (graceMs > 0) await waitForGrace(graceMs)
      ending.abort()
      if (active > 0) await new Promise((resolve) => setImmediate(resolve)) // For those that obey the signal.
      phase = 'closed'
      alarm.set(undefined)
      release()
    },
  }
}

/** Hand-outs until everything else in the process has its turn. */
const TURN = 256

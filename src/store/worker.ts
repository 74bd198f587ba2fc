/**
 * The worker of a queue. It claims due jobs from the store, at most `concurrency` at a time: whenever it is woken, when the next job is
 * due, and every `pollMs`.
 */

import { createAlarm } from '../kit/alarm.ts'
import { backoff } from '../kit/backoff.ts'
import { isThenable } from '../kit/callbacks.ts'
import { withTimeout } from '../kit/timeout.ts'
import type { ReportOptions } from './leases.ts'
import type { QueueStore } from './queue-store.ts'
import type { ClaimedJob, HandleJob, WorkOptions } from './queue-types.ts'
import { RunningJobs, STORE_BACKOFF } from './running-jobs.ts'

interface WorkerOptions extends ReportOptions {
  readonly pollMs: number | undefined
}

/** After claiming this many jobs in one turn of the event loop, the worker waits for the next turn, so that other work can run. */
const CLAIMS_A_TURN = 256
/** How long releasing jobs may take when a queue closes, in milliseconds. */
export const RELEASE_MS = 400

export class QueueWorker<Claim extends ClaimedJob> {
  readonly #store: QueueStore<Claim>
  readonly #options: WorkerOptions
  readonly #isOrdered: boolean
  readonly #alarm: ReturnType<typeof createAlarm>
  /** Aborts when the grace period of a closing queue is over. */
  readonly #graceEnd = new AbortController()
  readonly #running: RunningJobs<Claim>
  #handle: HandleJob | undefined
  #workOptions: WorkOptions = { concurrency: 0 }
  #phase: 'open' | 'closing' | 'closed' = 'open'
  /** The pauses that are in force: `here` for a pause of this process, `everywhere` for a pause of all processes through a mark. */
  readonly #pauses = new Set<'here' | 'everywhere'>()
  /** The functions that resolve the pending calls to `pause`. */
  #pausing: (() => void)[] = []
  /** Whether the last claims included a job that must run alone. If so, the next claim waits until no job runs, and asks for one job. */
  #isOneAtATime = false
  /** True from a call to `wake` until the claim that the call starts has ended. */
  #isClaiming = false
  #wasWokenMeanwhile = false
  #claiming: Promise<void> | undefined
  /**
   * Whether there was room for more jobs after the last claim. The value is stored, because asking `room` later may give a different
   * answer.
   */
  #hasRoom = false
  #claimedThisTurn = 0
  /** How many times in a row the store has failed. */
  #failures = 0
  #drains: (() => void)[] = []
  /** Whether a call to `drain` has asked to wait also for jobs that come due later. */
  #drainsAll = false

  constructor(store: QueueStore<Claim>, options: WorkerOptions) {
    const { name, clock, onError } = options
    this.#store = store
    this.#options = options
    this.#isOrdered = store.isOrdered === true
    this.#alarm = createAlarm(clock, this.wake)
    this.#running = new RunningJobs(store, {
      name,
      clock,
      onError,
      signal: this.#graceEnd.signal,
      mayClaimNext: () => this.#mayClaim() && !this.#isOneAtATime && this.#workOptions.room === undefined,
      onClaimed: (claims) => this.#runOrRelease(claims),
      onEnd: () => this.#wakeAfterHandler(),
      onRecorded: () => this.#wakeAfterRecording(),
    })
  }

  readonly wake = (): void => {
    if (this.#isClaiming) {
      this.#wasWokenMeanwhile = true
    } else if (this.#phase !== 'closed') {
      this.#isClaiming = true
      // The limit is above `concurrency`, so that after claiming `concurrency` jobs, the worker can claim again in the
      // same turn if some of them have already ended.
      const isTurnFull = this.#claimedThisTurn >= Math.max(CLAIMS_A_TURN, this.#workOptions.concurrency + 1)
      if (isTurnFull) setImmediate(this.#startClaiming)
      // In an ordered store, the claim is made after all outcomes of this turn, so that it also gets the jobs that these outcomes make due.
      else if (this.#isOrdered) process.nextTick(this.#startClaiming)
      else queueMicrotask(this.#startClaiming)
    }
  }

  start(handle: HandleJob, options: WorkOptions): void {
    this.#handle = handle
    this.#workOptions = options
    this.wake()
  }

  setPaused(isPaused: boolean, where: 'here' | 'everywhere'): void {
    const wasPaused = this.#pauses.has(where)
    if (isPaused) this.#pauses.add(where)
    else this.#pauses.delete(where)
    if (isPaused !== wasPaused) this.wake()
  }

  /** Stops claiming. Resolves when this process holds no claims any more. */
  pause(): Promise<void> {
    if (this.#phase === 'closed') return Promise.resolve()
    this.#pauses.add('here')
    this.wake()
    return new Promise((resolve) => this.#pausing.push(resolve))
  }

  resume(): void {
    this.#pauses.delete('here')
    this.#endPauses()
    this.wake()
  }

  /** @param all Whether to wait also for jobs that come due later. */
  drain(all = false): Promise<void> {
    if (this.#phase === 'closed') return Promise.resolve()
    this.#drainsAll ||= all
    this.wake()
    return new Promise((resolve) => this.#drains.push(resolve))
  }

  async close(graceMs: number): Promise<void> {
    const { clock } = this.#options
    this.#phase = 'closing'
    if (graceMs > 0) await withTimeout(this.drain(), graceMs, clock)
    this.#graceEnd.abort()
    // Gives handlers that obey the signal one turn of the event loop to end, so that their outcomes are recorded.
    if (this.#running.size > 0) await new Promise((resolve) => setImmediate(resolve))
    this.#phase = 'closed'
    this.#alarm.set(undefined)
    this.#resolveDrains()
    this.#endPauses()
    const closing = Promise.resolve(this.#claiming).then(() => this.#running.close())
    await withTimeout(closing, RELEASE_MS, clock)
  }

  readonly #startClaiming = (): void => {
    this.#claiming = this.#claimDue()
  }

  readonly #endTurn = (): void => {
    this.#claimedThisTurn = 0
  }

  /**
   * Wakes the worker while the outcome is being recorded. In an ordered store, the claim takes effect after the outcome, so it also gets a
   * job that the outcome makes due. In another store, the worker is woken only to fill the room that the handler has left.
   */
  #wakeAfterHandler(): void {
    if (this.#isOrdered || !this.#hasRoom) this.wake()
  }

  #wakeAfterRecording(): void {
    const wasWokenBefore = this.#isOrdered && this.#hasRoom
    if (!wasWokenBefore || this.#pauses.size > 0 || this.#drains.length > 0) this.wake()
  }

  /**
   * Claims due jobs, and plans the next claim. Runs synchronously if the store answers without promises, because only promises are awaited.
   */
  async #claimDue(): Promise<void> {
    this.#wasWokenMeanwhile = false
    let hasAnswered = true
    let hasWaiting = false
    let nextAt: number | undefined
    try {
      const limit = this.#countRoom()
      if (limit > 0) {
        const claims = this.#store.claim(limit, this.#workOptions.onUnreadable)
        if (isThenable(claims)) await this.#runOrRelease(await claims)
        else this.#startJobs(claims)
      }
      this.#hasRoom = this.#countRoom() > 0
      const mayEndDrains = this.#drains.length > 0 && this.#running.size === 0
      if (mayEndDrains && this.#drainsAll) {
        const counts = this.#store.counts()
        hasWaiting = (isThenable(counts) ? await counts : counts).waiting > 0
      }
      if (this.#hasRoom || mayEndDrains) {
        const next = this.#store.nextDueAt()
        nextAt = (isThenable(next) ? await next : next)?.getTime()
      }
      this.#failures = 0
    } catch (error) {
      if (this.#phase !== 'closed') this.#options.onError(error)
      hasAnswered = false
      this.#failures += 1
      nextAt = this.#options.clock.now() + backoff(this.#failures, STORE_BACKOFF)
    }
    this.#isClaiming = false
    if (this.#wasWokenMeanwhile) this.wake()
    else if (this.#phase !== 'closed') {
      if (this.#pauses.size > 0 && this.#running.size === 0) this.#endPauses()
      if (hasAnswered) this.#endDrainsUnlessDue(nextAt, hasWaiting)
      this.#alarm.set(hasAnswered ? this.#nextLookAt(nextAt) : nextAt)
    }
  }

  #mayClaim(): boolean {
    if (this.#handle === undefined || this.#pauses.size > 0) return false
    if (this.#phase === 'open') return true
    // Jobs that would be lost at the end of the process are still handled during the grace period.
    return this.#phase === 'closing' && !this.#store.isDurable && !this.#graceEnd.signal.aborted
  }

  /** Returns how many jobs may be claimed now. */
  #countRoom(): number {
    const { size, handling } = this.#running
    const { concurrency, room } = this.#workOptions
    if (!this.#mayClaim() || (this.#isOneAtATime && size > 0)) return 0
    // A job whose outcome is being recorded no longer counts towards `concurrency`, but at most `2 * concurrency` jobs are held in all.
    const free = Math.min(concurrency - handling, 2 * concurrency - size)
    const limit = this.#isOneAtATime ? Math.min(free, 1) : free
    return limit > 0 && room !== undefined ? Math.min(limit, room.count()) : limit
  }

  /**
   * Runs claimed jobs. Releases them before a handler sees them if the queue was paused or closed in the meantime. Also releases them if
   * one of the jobs must run alone, but other jobs were claimed with it or are running.
   */
  async #runOrRelease(claims: readonly Claim[]): Promise<void> {
    if (claims.length === 0) return
    const { runsAlone } = this.#workOptions
    this.#isOneAtATime = runsAlone !== undefined && claims.some(runsAlone)
    const areMany = claims.length > 1 || this.#running.size > 0
    if (this.#mayClaim() && !(this.#isOneAtATime && areMany)) return this.#startJobs(claims)
    this.#wasWokenMeanwhile ||= this.#isOneAtATime // The released jobs are due again at once, so another claim follows.
    try {
      await this.#store.release(claims, { wereHandled: false })
    } catch (error) {
      this.#options.onError(error)
      // The jobs run after all, because no other process gets them while this process holds them.
      if (this.#phase !== 'closed') this.#startJobs(claims)
    }
  }

  #startJobs(claims: readonly Claim[]): void {
    if (this.#handle === undefined) return // Without a handler, nothing is claimed, so this is never reached.
    if (this.#claimedThisTurn === 0 && claims.length > 0) setImmediate(this.#endTurn)
    this.#claimedThisTurn += claims.length
    this.#running.start(claims, this.#handle)
  }

  /**
   * Resolves the calls to `drain` unless there are jobs left to wait for. A closing queue waits neither for retries nor for jobs that will
   * not be claimed.
   */
  #endDrainsUnlessDue(nextAt: number | undefined, hasWaiting: boolean): void {
    const isDue = nextAt !== undefined && nextAt <= this.#options.clock.now()
    const mustWait = this.#phase === 'open' ? isDue || hasWaiting : isDue && this.#mayClaim()
    if (this.#running.size === 0 && !mustWait) this.#resolveDrains()
  }

  #nextLookAt(nextAt: number | undefined): number | undefined {
    if (this.#hasRoom) return this.#orNextPoll(nextAt)
    const roomAt = this.#nextRoomAt()
    // While a call to `drain` waits, the worker checks at each poll whether other processes still hold jobs.
    return this.#drains.length > 0 ? this.#orNextPoll(roomAt) : roomAt
  }

  /** Returns the time from which more jobs may be claimed even if no running job ends; undefined if a job has to end first. */
  #nextRoomAt(): number | undefined {
    const { concurrency, room } = this.#workOptions
    const mustEnd = this.#running.handling >= concurrency || this.#running.size >= 2 * concurrency
    return mustEnd || !this.#mayClaim() ? undefined : room?.nextAt()?.getTime()
  }

  #orNextPoll(at: number | undefined): number | undefined {
    const { pollMs, clock } = this.#options
    if (pollMs === undefined) return at
    return Math.min(at ?? Number.POSITIVE_INFINITY, clock.now() + pollMs)
  }

  #endPauses(): void {
    for (const resolve of this.#pausing) resolve()
    this.#pausing = []
  }

  #resolveDrains(): void {
    for (const resolve of this.#drains) resolve()
    this.#drains = []
  }
}

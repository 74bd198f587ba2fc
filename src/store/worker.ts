/** Claims due jobs of a store, at most `concurrency` at a time: when woken, when the next job is due, and every `pollMs`. */

import { createAlarm } from '../kit/alarm.ts'
import { backoff } from '../kit/backoff.ts'
import { isThenable } from '../kit/callbacks.ts'
import { within } from '../kit/timeout.ts'
import type { ReportOptions } from './leases.ts'
import type { QueueStore } from './queue-store.ts'
import type { ClaimedJob, HandleJob, WorkOptions } from './queue-types.ts'
import { RunningJobs, STORE_BACKOFF } from './running-jobs.ts'

interface WorkerOptions extends ReportOptions {
  readonly pollMs: number | undefined
}

/** After so many claims in one turn of the event loop, or more than one answer may bring, it waits for the next turn. */
const CLAIMS_A_TURN = 256
export const RELEASE_MS = 400

export class QueueWorker<Claim extends ClaimedJob> {
  readonly #store: QueueStore<Claim>
  readonly #options: WorkerOptions
  readonly #isOrdered: boolean
  readonly #alarm: ReturnType<typeof createAlarm>
  readonly #ending = new AbortController()
  readonly #running: RunningJobs<Claim>
  #handle: HandleJob | undefined
  #how: WorkOptions = { concurrency: 0 }
  #phase: 'open' | 'closing' | 'closed' = 'open'
  #isPaused = false
  /** One job at a time: the last claims had one that runs alone. */
  #isCareful = false
  #isClaiming = false
  /** Whether it was woken while it claimed. */
  #wasWoken = false
  #claiming: Promise<void> | undefined
  /** After the last claim. Asked once: room may come with time alone. */
  #hasRoom = false
  #claimedThisTurn = 0
  #failures = 0
  #drains: (() => void)[] = []
  #waitsForAll = false

  constructor(store: QueueStore<Claim>, options: WorkerOptions) {
    const { name, clock, onError } = options
    this.#store = store
    this.#options = options
    this.#isOrdered = store.isOrdered === true
    this.#alarm = createAlarm(clock, this.wake)
    this.#running = new RunningJobs(store, {
      ...{ name, clock, signal: this.#ending.signal, onError },
      mayClaimNext: () => this.#mayClaim() && !this.#isCareful && this.#how.room === undefined,
      onClaimed: (claims) => this.#runOrRelease(claims),
      onEnd: () => (this.#isOrdered || !this.#hasRoom) && this.wake(),
      onRecorded: () => (!this.#isOrdered || !this.#hasRoom || this.#drains.length > 0) && this.wake(),
    })
  }

  readonly wake = (): void => {
    if (this.#isClaiming) {
      this.#wasWoken = true
    } else if (this.#phase !== 'closed') {
      this.#isClaiming = true
      const isBusy = this.#claimedThisTurn >= Math.max(CLAIMS_A_TURN, this.#how.concurrency + 1)
      if (isBusy) setImmediate(this.#startClaiming)
      else if (this.#isOrdered)
        process.nextTick(this.#startClaiming) // After all that ends in this turn.
      else queueMicrotask(this.#startClaiming)
    }
  }

  start(handle: HandleJob, options: WorkOptions): void {
    this.#handle = handle
    this.#how = options
    this.wake()
  }

  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    this.wake()
  }

  /** @param isForAll Whether it waits for jobs whose time is still to come, too. */
  drain(isForAll = false): Promise<void> {
    if (this.#phase === 'closed') return Promise.resolve()
    this.#waitsForAll ||= isForAll
    this.wake()
    return new Promise((resolve) => this.#drains.push(resolve))
  }

  async close(graceMs: number): Promise<void> {
    const { clock } = this.#options
    this.#phase = 'closing'
    if (graceMs > 0) await within(this.drain(), graceMs, clock)
    this.#ending.abort()
    if (this.#running.size > 0) await new Promise((resolve) => setImmediate(resolve)) // For handlers that obey the signal.
    this.#phase = 'closed'
    this.#alarm.set(undefined)
    this.#resolveDrains()
    const closing = Promise.resolve(this.#claiming).then(() => this.#running.close())
    await within(closing, RELEASE_MS, clock)
  }

  readonly #startClaiming = (): void => {
    this.#claiming = this.#claimDue()
  }

  readonly #endTurn = (): void => {
    this.#claimedThisTurn = 0
  }

  /** Awaits only promises: with a store that answers without one, it runs through. */
  async #claimDue(): Promise<void> {
    this.#wasWoken = false
    let hasAnswered = true
    let hasWaiting = false
    let nextAt: number | undefined
    try {
      const most = this.#findRoom()
      if (most > 0) {
        const claims = this.#store.claim(most, this.#how.onUnreadable)
        if (isThenable(claims)) await this.#runOrRelease(await claims)
        else this.#run(claims)
      }
      this.#hasRoom = this.#findRoom() > 0
      const isAsked = this.#drains.length > 0 && this.#running.size === 0
      if (isAsked && this.#waitsForAll) {
        const counts = this.#store.counts()
        hasWaiting = (isThenable(counts) ? await counts : counts).waiting > 0
      }
      if (this.#hasRoom || isAsked) {
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
    if (this.#wasWoken) this.wake()
    else this.#setAlarm(nextAt, hasAnswered, hasWaiting)
  }

  #mayClaim(): boolean {
    if (this.#handle === undefined || this.#isPaused) return false
    if (this.#phase === 'open') return true
    return this.#phase === 'closing' && !this.#store.isDurable && !this.#ending.signal.aborted
  }

  #findRoom(): number {
    const { size, handling } = this.#running
    const { concurrency, room } = this.#how
    if (!this.#mayClaim() || (this.#isCareful && size > 0)) return 0
    const most = Math.min(concurrency - handling, 2 * concurrency - size) // Twice as many while outcomes are recorded.
    const limit = this.#isCareful ? Math.min(most, 1) : most
    return limit > 0 && room !== undefined ? Math.min(limit, room.count()) : limit
  }

  /** Releases claims that were answered after a pause or a close, or of which one runs alone: no handler saw their jobs. */
  async #runOrRelease(claims: readonly Claim[]): Promise<void> {
    if (claims.length === 0) return
    const { runsAlone } = this.#how
    this.#isCareful = runsAlone !== undefined && claims.some(runsAlone)
    const areMany = claims.length > 1 || this.#running.size > 0
    if (this.#mayClaim() && !(this.#isCareful && areMany)) return this.#run(claims)
    this.#wasWoken ||= this.#isCareful // They are due again.
    try {
      await this.#store.release(claims, { wereHandled: false })
    } catch (error) {
      this.#options.onError(error)
      if (this.#phase !== 'closed') this.#run(claims) // While this process holds them, no other gets them.
    }
  }

  #run(claims: readonly Claim[]): void {
    if (this.#handle === undefined) return // Nothing is claimed without one.
    if (this.#claimedThisTurn === 0 && claims.length > 0) setImmediate(this.#endTurn)
    this.#claimedThisTurn += claims.length
    this.#running.run(claims, this.#handle)
  }

  /** Called when no `wake` came meanwhile. When the store failed, `nextAt` is the time to ask again. */
  #setAlarm(nextAt: number | undefined, hasAnswered: boolean, hasWaiting: boolean): void {
    if (this.#phase === 'closed') return
    const isDue = nextAt !== undefined && nextAt <= this.#options.clock.now()
    // Closing waits neither for retries nor for jobs that nothing claims.
    const isWaitedFor = this.#phase === 'open' ? isDue || hasWaiting : isDue && this.#mayClaim()
    if (hasAnswered && this.#running.size === 0 && !isWaitedFor) this.#resolveDrains()
    if (!hasAnswered) this.#alarm.set(nextAt)
    else if (this.#hasRoom) this.#alarm.set(this.#soonest(nextAt))
    else this.#alarm.set(this.#drains.length > 0 ? this.#soonest(this.#roomAt()) : this.#roomAt())
  }

  #roomAt(): number | undefined {
    const { concurrency, room } = this.#how
    const mustEnd = this.#running.handling >= concurrency || this.#running.size >= 2 * concurrency
    return mustEnd || !this.#mayClaim() ? undefined : room?.nextAt()?.getTime()
  }

  #soonest(nextAt: number | undefined): number | undefined {
    const { pollMs, clock } = this.#options
    if (pollMs === undefined) return nextAt
    return Math.min(nextAt ?? Number.POSITIVE_INFINITY, clock.now() + pollMs)
  }

  #resolveDrains(): void {
    for (const resolve of this.#drains) resolve()
    this.#drains = []
  }
}

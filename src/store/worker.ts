/** Claims due jobs of a store, at most `concurrency` at a time: when woken, when the next job is due, and every `pollMs`. */

import { createAlarm } from '../kit/alarm.ts'
import { backoff } from '../kit/backoff.ts'
import { isThenable } from '../kit/callbacks.ts'
import { within } from '../kit/timeout.ts'
import type { ReportOptions } from './leases.ts'
import type { QueueStore } from './queue-store.ts'
import type { ClaimedJob, HandleJob, WorkOptions } from './queue-types.ts'
import { createRunning, STORE_BACKOFF } from './running-jobs.ts'

interface WorkerOptions extends ReportOptions {
  readonly pollMs: number | undefined
}

/** After so many claims in one turn of the event loop, or more than one answer may bring, it waits for the next turn. */
const CLAIMS_A_TURN = 256
export const RELEASE_MS = 400

export function createWorker<Claim extends ClaimedJob>(store: QueueStore<Claim>, options: WorkerOptions) {
  const { name, clock, pollMs, onError } = options
  const alarm = createAlarm(clock, wake)
  const ending = new AbortController()
  const { signal } = ending
  const isOrdered = store.isOrdered === true
  const running = createRunning(store, {
    ...{ name, clock, signal, onError },
    mayClaimNext: () => mayClaim() && !isCareful && how.room === undefined,
    onClaimed: runOrRelease,
    onEnd: () => (isOrdered || !hasRoom) && wake(),
    onRecorded: () => (!isOrdered || !hasRoom || drains.length > 0) && wake(),
  })
  let handle: HandleJob | undefined
  let how: WorkOptions = { concurrency: 0 }
  let phase: 'open' | 'closing' | 'closed' = 'open'
  let isPaused = false
  let isCareful = false // One job at a time: the last claims had one that runs alone.
  let isClaiming = false
  let wasWoken = false // While it claimed.
  let claiming: Promise<void> | undefined
  let hasRoom = false // After the last claim. Asked once: room may come with time alone.
  let claimedThisTurn = 0
  let failures = 0
  let drains: (() => void)[] = []
  let waitsForAll = false

  function wake(): void {
    if (isClaiming) {
      wasWoken = true
    } else if (phase !== 'closed') {
      isClaiming = true
      if (claimedThisTurn >= Math.max(CLAIMS_A_TURN, how.concurrency + 1)) setImmediate(startClaiming)
      else if (isOrdered)
        process.nextTick(startClaiming) // After all that ends in this turn.
      else queueMicrotask(startClaiming)
    }
  }

  function startClaiming(): void {
    claiming = claimDue()
  }

  function endTurn(): void {
    claimedThisTurn = 0
  }

  /** Awaits only promises: with a store that answers without one, it runs through. */
  async function claimDue(): Promise<void> {
    wasWoken = false
    let hasAnswered = true
    let hasWaiting = false
    let nextAt: number | undefined
    try {
      const most = findRoom()
      if (most > 0) {
        const claims = store.claim(most, how.onUnreadable)
        if (isThenable(claims)) await runOrRelease(await claims)
        else run(claims)
      }
      hasRoom = findRoom() > 0
      const isAsked = drains.length > 0 && running.size === 0
      if (isAsked && waitsForAll) {
        const counts = store.counts()
        hasWaiting = (isThenable(counts) ? await counts : counts).waiting > 0
      }
      if (hasRoom || isAsked) {
        const next = store.nextDueAt()
        nextAt = (isThenable(next) ? await next : next)?.getTime()
      }
      failures = 0
    } catch (error) {
      if (phase !== 'closed') onError(error)
      hasAnswered = false
      failures += 1
      nextAt = clock.now() + backoff(failures, STORE_BACKOFF)
    }
    isClaiming = false
    if (wasWoken) wake()
    else setAlarm(nextAt, hasAnswered, hasWaiting)
  }

  function mayClaim(): boolean {
    if (handle === undefined || isPaused) return false
    return phase === 'open' || (phase === 'closing' && !store.isDurable && !signal.aborted)
  }

  function findRoom(): number {
    if (!mayClaim() || (isCareful && running.size > 0)) return 0
    // Twice as many while outcomes are recorded.
    const most = Math.min(how.concurrency - running.handling, 2 * how.concurrency - running.size)
    const limit = isCareful ? Math.min(most, 1) : most
    return limit > 0 && how.room !== undefined ? Math.min(limit, how.room.count()) : limit
  }

  /** Releases claims that were answered after a pause or a close, or of which one runs alone: no handler saw their jobs. */
  async function runOrRelease(claims: readonly Claim[]): Promise<void> {
    if (claims.length === 0) return
    isCareful = how.runsAlone !== undefined && claims.some(how.runsAlone)
    const areMany = claims.length > 1 || running.size > 0
    if (mayClaim() && !(isCareful && areMany)) return run(claims)
    wasWoken ||= isCareful // They are due again.
    try {
      await store.release(claims, { wereHandled: false })
    } catch (error) {
      onError(error)
      if (phase !== 'closed') run(claims) // While this process holds them, no other gets them.
    }
  }

  function run(claims: readonly Claim[]): void {
    if (claimedThisTurn === 0 && claims.length > 0) setImmediate(endTurn)
    claimedThisTurn += claims.length
    running.run(claims, handle as HandleJob) // Nothing is claimed without one.
  }

  /** Called when no `wake` came meanwhile. When the store failed, `nextAt` is the time to ask again. */
  function setAlarm(nextAt: number | undefined, hasAnswered: boolean, hasWaiting: boolean): void {
    if (phase === 'closed') return
    const isDue = nextAt !== undefined && nextAt <= clock.now()
    // Closing waits neither for retries nor for jobs that nothing claims.
    const isWaitedFor = phase === 'open' ? isDue || hasWaiting : isDue && mayClaim()
    if (hasAnswered && running.size === 0 && !isWaitedFor) resolveDrains()
    if (!hasAnswered) alarm.set(nextAt)
    else if (hasRoom) alarm.set(soonest(nextAt))
    else alarm.set(drains.length > 0 ? soonest(roomAt()) : roomAt())
  }

  function roomAt(): number | undefined {
    const mustEnd = running.handling >= how.concurrency || running.size >= 2 * how.concurrency
    return mustEnd || !mayClaim() ? undefined : how.room?.nextAt()?.getTime()
  }

  function soonest(nextAt: number | undefined): number | undefined {
    if (pollMs === undefined) return nextAt
    return Math.min(nextAt ?? Number.POSITIVE_INFINITY, clock.now() + pollMs)
  }

  function resolveDrains(): void {
    for (const resolve of drains) resolve()
    drains = []
  }

  /** @param isForAll Whether it waits for jobs whose time is still to come, too. */
  function drain(isForAll = false): Promise<void> {
    if (phase === 'closed') return Promise.resolve()
    waitsForAll ||= isForAll
    wake()
    return new Promise((resolve) => drains.push(resolve))
  }

  return {
    wake,
    drain,
    start(handler: HandleJob, options: WorkOptions): void {
      handle = handler
      how = options
      wake()
    },
    setPaused(paused: boolean): void {
      isPaused = paused
      wake()
    },
    async close(graceMs: number): Promise<void> {
      phase = 'closing'
      if (graceMs > 0) await within(drain(), graceMs, clock)
      ending.abort()
      if (running.size > 0) await new Promise((resolve) => setImmediate(resolve)) // For handlers that obey the signal.
      phase = 'closed'
      alarm.set(undefined)
      resolveDrains()
      await within(Promise.resolve(claiming).then(running.close), RELEASE_MS, clock)
    },
  }
}

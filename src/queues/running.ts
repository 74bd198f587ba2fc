/** The jobs that run in this process: their handlers, leases and outcomes, and their release when the queue closes. */

import { createSlots } from '../collections/slots.ts'
import type { Clock } from '../time/clock.ts'
import { readOutcome } from './handle-job.ts'
import { createLeases } from './leases.ts'
import { createRecordOutcome } from './outcomes.ts'
import type { ClaimedJob, HandleJob } from './queue.ts'
import type { QueueStore } from './store.ts'

/** How jobs run. */
export interface RunningOptions {
  /** Names the queue in errors. */
  readonly name: string
  readonly clock: Clock
  /** Aborts when the grace of a closing queue is over. One for all jobs: creating one costs more than the rest of the loop. */
  readonly signal: AbortSignal
  /** Receives the error of each call of the store that failed. */
  readonly onError: (error: unknown) => void
  /** Called when a job makes room for another one. */
  readonly onEnd: () => void
  /** Called when an outcome is recorded that made room before. */
  readonly onRecorded: () => unknown
}

/** Running jobs. */
export interface Running<Claim> {
  /** How many there are, each until its outcome is recorded. */
  readonly size: number
  /** How many of them leave no room for another one. */
  readonly busy: number
  run(claims: readonly Claim[], handle: HandleJob): void
  /** Ignores later outcomes, and releases the jobs that still run. Resolves when the store has answered. */
  close(): Promise<void>
}

/** Creates it; nothing runs yet. */
export function createRunning<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  { name, clock, signal, onError, onEnd, onRecorded }: RunningOptions,
): Running<Claim> {
  const leases = createLeases(store, { name, clock, onError })
  const unrecorded = createSlots<Claim>() // Closing releases them.
  const recordings = createSlots<Promise<void>>()
  const record = createRecordOutcome(store, {
    clock,
    signal,
    onError,
    onGivenUp: (claim) => void unrecorded.add(claim),
  })
  let size = 0
  let leaving = 0 // Their handlers have ended, in a store that is ordered.
  let isClosed = false

  /** Awaits only promises: with a store that answers without one, it runs through. */
  async function runOne(claim: Claim, handle: HandleJob): Promise<void> {
    const place = unrecorded.add(claim)
    const blockedMs = leases.blockedMsOf(claim.id)
    const job = blockedMs === undefined ? claim : { ...claim, blockedMs }
    let result: unknown
    try {
      result = await handle(job, signal)
    } catch {
      // The handler reports its own errors.
    }
    if (isClosed) return
    unrecorded.remove(place)
    const recording = record(claim, readOutcome(result, job, clock))
    const leaves = recording !== undefined && store.isOrdered === true
    if (leaves) {
      leaving += 1
      onEnd()
    }
    if (recording !== undefined) {
      const until = recordings.add(recording)
      await recording
      recordings.remove(until)
    }
    leases.remove(claim)
    size -= 1
    if (leaves) leaving -= 1
    if (leaves) onRecorded()
    else onEnd()
  }

  return {
    get size() {
      return size
    },
    get busy() {
      return size - leaving
    },
    run(claims, handle) {
      size += claims.length
      leases.add(claims)
      for (const claim of claims) void runOne(claim, handle)
    },
    async close() {
      isClosed = true
      await Promise.all(recordings.list())
      await leases.close()
      if (unrecorded.size === 0) return
      try {
        await store.release(unrecorded.list(), { wereHandled: true })
      } catch (error) {
        onError(error) // The claims lapse by themselves.
      }
    },
  }
}

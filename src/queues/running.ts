/** The jobs that run in this process: their handlers, leases and outcomes, and their release when the queue closes. */

import type { Clock } from '../time/clock.ts'
import { handleJob } from './handle-job.ts'
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
  /** Called when the outcome of a job is recorded. */
  readonly onEnd: () => void
}

/** Running jobs. */
export interface Running<Claim> {
  /** How many there are, each until its outcome is recorded. */
  readonly size: number
  run(claims: readonly Claim[], handle: HandleJob): void
  /** Ignores later outcomes, and releases the jobs that still run. Resolves when the store has answered. */
  close(): Promise<void>
}

/** Creates it; nothing runs yet. */
export function createRunning<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  { name, clock, signal, onError, onEnd }: RunningOptions,
): Running<Claim> {
  const leases = createLeases(store, { name, clock, onError })
  const unrecorded = new Set<Claim>() // Closing releases them.
  const recordings = new Set<Promise<void>>()
  const record = createRecordOutcome(store, { clock, signal, onError, onGivenUp: (claim) => unrecorded.add(claim) })
  let size = 0
  let isClosed = false

  /** Awaits only promises: with a store that answers without one, it runs through. */
  async function runOne(claim: Claim, handle: HandleJob): Promise<void> {
    unrecorded.add(claim)
    const blockedMs = leases.blockedMsOf(claim.id)
    const job = blockedMs === undefined ? claim : { ...claim, blockedMs }
    const outcome = await handleJob(handle, job, signal, clock)
    if (isClosed) return
    unrecorded.delete(claim)
    const recording = record(claim, outcome)
    if (recording !== undefined) {
      recordings.add(recording)
      await recording
      recordings.delete(recording)
    }
    leases.remove(claim)
    size -= 1
    onEnd()
  }

  return {
    get size() {
      return size
    },
    run(claims, handle) {
      size += claims.length
      leases.add(claims)
      for (const claim of claims) void runOne(claim, handle)
    },
    async close() {
      isClosed = true
      await Promise.all(recordings)
      await leases.close()
      if (unrecorded.size === 0) return
      try {
        await store.release([...unrecorded], { wereHandled: true })
      } catch (error) {
        onError(error) // The claims lapse by themselves.
      }
    },
  }
}

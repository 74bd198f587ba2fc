/** The jobs that run in this process: their handlers, leases and outcomes, and their release when the queue closes. */

import { isUint8Array } from 'node:util/types'
import { createSlots } from '../collections/slots.ts'
import { backoff } from '../time/backoff.ts'
import type { Clock } from '../time/clock.ts'
import { within } from '../time/timeout.ts'
import type { ClaimedJob, Complete, HandleJob, JobTransaction, Outcome } from './api.ts'
import { createLeases, type ReportOptions } from './leases.ts'
import type { QueueStore } from './store.ts'

export const STORE_BACKOFF = { firstMs: 500, maxMs: 30_000 } as const

const HANDLER_BACKOFF = { firstMs: 1_000, maxMs: 60_000 } as const

interface RunningOptions<Claim> extends ReportOptions {
  /** Aborts when the grace of a closing queue is over. One for all jobs: creating one costs more than the rest of the loop. */
  readonly signal: AbortSignal
  readonly onEnd: () => void
  readonly onRecorded: () => unknown
  /** Whether the call that completes a job may claim the next. */
  readonly claimsNext: () => boolean
  readonly onClaimed: (claims: readonly Claim[]) => Promise<void>
}

export function createRunning<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  { name, clock, signal, onError, onEnd, onRecorded, claimsNext, onClaimed }: RunningOptions<Claim>,
) {
  const leases = createLeases(store, { name, clock, onError })
  const unrecorded = createSlots<Claim>() // Closing releases them.
  const recordings = createSlots<Promise<void>>()
  let size = 0
  let leaving = 0 // Their handlers have ended, in a store that is ordered.
  let isClosed = false

  /** Awaits only promises: with a store that answers without one, it runs through. */
  async function runOne(claim: Claim, handle: HandleJob): Promise<void> {
    const slot = unrecorded.add(claim)
    const blockedMs = leases?.blockedMsOf(claim.id)
    const job = blockedMs === undefined ? claim : { ...claim, blockedMs }
    let { retryState } = job
    let saving: Promise<void> | undefined
    let hasEnded = false
    const save = async (state: Uint8Array): Promise<void> => {
      if (hasEnded) return
      retryState = state
      saving = saveAfter(saving, claim, state)
      await saving
    }
    let isRecorded = false
    const begin = async (timeoutMs: number): Promise<JobTransaction> => {
      const transaction = await (store as Required<QueueStore<Claim>>).begin(claim, timeoutMs)
      const commit = async (note?: Uint8Array): Promise<void> => {
        await transaction.commit(note)
        isRecorded = true
      }
      return { ...transaction, commit }
    }
    let result: unknown
    try {
      result = await handle(job, signal, save, store.begin && begin)
    } catch {
      // The handler reports its own errors.
    }
    hasEnded = true
    if (saving !== undefined) await saving // An outcome replaces what was saved.
    if (isClosed) return
    unrecorded.remove(slot)
    const recording = isRecorded ? undefined : record(claim, readOutcome(result, { ...job, retryState }, clock))
    const leaves = recording !== undefined && store.isOrdered === true ? 1 : 0
    leaving += leaves
    if (leaves) onEnd()
    if (recording !== undefined) {
      const until = recordings.add(recording)
      await recording
      recordings.remove(until)
    }
    leases?.remove(claim)
    size -= 1
    leaving -= leaves
    if (leaves) onRecorded()
    else onEnd()
  }

  /** One after the other, so that the last one stays. */
  async function saveAfter(before: Promise<void> | undefined, claim: Claim, retryState: Uint8Array): Promise<void> {
    await before
    try {
      await store.save(claim, retryState)
    } catch (error) {
      onError(error)
    }
  }

  function record(claim: Claim, outcome: Outcome): Promise<void> | undefined {
    try {
      const answer =
        'complete' in outcome && claimsNext() ? finishAndClaim(claim, outcome) : store.finish(claim, outcome)
      return answer?.then(undefined, (error: unknown) => recordAgain(claim, outcome, error))
    } catch (error) {
      return recordAgain(claim, outcome, error)
    }
  }

  async function finishAndClaim(claim: Claim, outcome: Complete): Promise<void> {
    const claims = await (store as Required<QueueStore<Claim>>).finishAndClaim(claim, outcome)
    if (claims.length > 0) await onClaimed(claims)
  }

  async function recordAgain(claim: Claim, outcome: Outcome, error: unknown): Promise<void> {
    onError(error)
    for (let failures = 1; ; failures += 1) {
      await waitUnlessAborted(backoff(failures, STORE_BACKOFF))
      try {
        return await store.finish(claim, outcome)
      } catch (again) {
        onError(again)
        if (signal.aborted) return void unrecorded.add(claim)
      }
    }
  }

  async function waitUnlessAborted(ms: number): Promise<void> {
    if (signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const stop = (): void => resolve()
    signal.addEventListener('abort', stop)
    await within(promise, ms, clock)
    signal.removeEventListener('abort', stop)
  }

  return {
    get size() {
      return size
    },
    get busy() {
      return size - leaving
    },
    run(claims: readonly Claim[], handle: HandleJob): void {
      size += claims.length
      leases?.add(claims)
      for (const claim of claims) void runOne(claim, handle)
    },
    async close(): Promise<void> {
      isClosed = true
      await Promise.all(recordings.list())
      await leases?.close()
      if (unrecorded.size === 0) return
      try {
        await store.release(unrecorded.list(), { wereHandled: true })
      } catch (error) {
        onError(error) // The claims lapse by themselves.
      }
    },
  }
}

function readOutcome(result: unknown, { claimCount, retryState }: ClaimedJob, clock: Clock): Outcome {
  if (isOutcome(result)) return result
  const retryAt = new Date(clock.now() + backoff(claimCount, HANDLER_BACKOFF))
  return retryState === undefined ? { retryAt } : { retryAt, retryState }
}

function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null) return false
  if ('complete' in value) return value.complete === true
  if ('retryState' in value && value.retryState !== undefined && !isUint8Array(value.retryState)) return false
  if ('retryAt' in value) return value.retryAt instanceof Date && !Number.isNaN(value.retryAt.getTime())
  return 'deadLetter' in value && typeof value.deadLetter === 'string'
}

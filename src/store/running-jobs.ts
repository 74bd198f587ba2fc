/** The jobs that run in this process: their handlers, leases and outcomes, and their release when the queue closes. */

import { isUint8Array } from 'node:util/types'
import { backoff } from '../kit/backoff.ts'
import type { Clock } from '../kit/clock.ts'
import { createSlots } from '../kit/slots.ts'
import { within } from '../kit/timeout.ts'
import { createLeases, type Held, type ReportOptions } from './leases.ts'
import type { QueueStore } from './queue-store.ts'
import type { ClaimedJob, Complete, HandleJob, JobTransaction, Outcome } from './queue-types.ts'

export const STORE_BACKOFF = { firstMs: 500, maxMs: 30_000 } as const

const HANDLER_BACKOFF = { firstMs: 1_000, maxMs: 60_000 } as const

interface RunningOptions<Claim> extends ReportOptions {
  /** Aborts when the grace of a closing queue is over. One for all jobs: creating one costs more than the rest of the loop. */
  readonly signal: AbortSignal
  /** A handler has ended: another may begin. */
  readonly onEnd: () => unknown
  /** Its outcome is recorded: it may have made a job due. */
  readonly onRecorded: () => unknown
  /** Whether the call that completes a job may claim the next one, which then gets its place. */
  readonly mayClaimNext: () => boolean
  readonly onClaimed: (claims: readonly Claim[]) => Promise<void>
}

interface RunningJob<Claim> extends Held<Claim> {
  /** Resolves to whether the outcome is recorded. Undefined until the handler has ended. */
  recording: Promise<boolean> | undefined
}

export function createRunning<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  { name, clock, signal, onError, onEnd, onRecorded, mayClaimNext, onClaimed }: RunningOptions<Claim>,
) {
  const jobs = createSlots<RunningJob<Claim>>()
  const leases = createLeases(store, jobs.list, { name, clock, onError })
  let handling = 0
  let isClosed = false

  /** Awaits only promises: with a store that answers without one, it runs through. */
  async function runOne(claim: Claim, handle: HandleJob): Promise<void> {
    const running: RunningJob<Claim> = { claim, since: clock.monotonic(), recording: undefined }
    const slot = jobs.add(running)
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
    let isCommitted = false
    const begin = async (timeoutMs: number): Promise<JobTransaction> => {
      const transaction = await (store as Required<QueueStore<Claim>>).begin(claim, timeoutMs)
      const commit = async (note?: Uint8Array): Promise<void> => {
        await transaction.commit(note)
        isCommitted = true
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
    const outcome = isCommitted ? undefined : readOutcome(result, { ...job, retryState }, clock)
    if (store.finishAndClaim !== undefined && outcome !== undefined && 'complete' in outcome && mayClaimNext()) {
      running.recording = finishAndClaim(claim, outcome)
    } else {
      handling -= 1
      if (outcome !== undefined) running.recording = record(claim, outcome)
      onEnd()
    }
    if (running.recording !== undefined && !(await running.recording)) return
    jobs.remove(slot)
    if (jobs.size === 0) leases?.stop()
    onRecorded()
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

  function record(claim: Claim, outcome: Outcome): Promise<boolean> | undefined {
    try {
      return store.finish(claim, outcome)?.then(
        () => true,
        (error: unknown) => recordAgain(claim, outcome, error),
      )
    } catch (error) {
      return recordAgain(claim, outcome, error)
    }
  }

  async function finishAndClaim(claim: Claim, outcome: Complete): Promise<boolean> {
    let claims: readonly Claim[] = []
    let failure: Promise<boolean> | undefined
    try {
      claims = await (store as Required<QueueStore<Claim>>).finishAndClaim(claim, outcome)
    } catch (error) {
      failure = recordAgain(claim, outcome, error)
    }
    handling -= 1
    await onClaimed(claims)
    return failure ?? true
  }

  async function recordAgain(claim: Claim, outcome: Outcome, error: unknown): Promise<boolean> {
    onError(error)
    for (let failures = 1; ; failures += 1) {
      await waitUnlessAborted(backoff(failures, STORE_BACKOFF))
      try {
        await store.finish(claim, outcome)
        return true
      } catch (again) {
        onError(again)
        if (signal.aborted) return false
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
    /** How many are claimed. */
    get size() {
      return jobs.size
    },
    /** How many of them have a handler that has not ended. */
    get handling() {
      return handling
    },
    run(claims: readonly Claim[], handle: HandleJob): void {
      handling += claims.length
      for (const claim of claims) void runOne(claim, handle)
      if (claims.length > 0) leases?.start()
    },
    async close(): Promise<void> {
      isClosed = true
      const left = jobs.list()
      const areRecorded = await Promise.all(left.map(({ recording }) => recording))
      await leases?.close()
      const unrecorded = left.filter((_, index) => areRecorded[index] !== true).map(({ claim }) => claim)
      if (unrecorded.length === 0) return
      try {
        await store.release(unrecorded, { wereHandled: true })
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

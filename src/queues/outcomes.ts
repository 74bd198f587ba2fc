/** Records what handlers decided; while the store fails, again until it works or the queue is closed. */

import { backoff } from '../time/backoff.ts'
import type { Clock } from '../time/clock.ts'
import { within } from '../time/timeout.ts'
import type { ClaimedJob, Outcome } from './queue.ts'
import type { QueueStore } from './store.ts'

/** While the store fails. */
export const STORE_BACKOFF = { firstMs: 500, maxMs: 30_000 } as const

/** How outcomes are recorded. */
export interface OutcomesOptions<Claim> {
  readonly clock: Clock
  /** Ends the waiting: an outcome that waits for its next attempt gets it at once, and no other. */
  readonly signal: AbortSignal
  /** Receives the error of each attempt that failed. */
  readonly onError: (error: unknown) => void
  /** Receives a claim whose last attempt failed. */
  readonly onGivenUp: (claim: Claim) => void
}

/** Records an outcome. Returns undefined when the store answered at once, else a promise that never rejects. */
export type RecordOutcome<Claim> = (claim: Claim, outcome: Outcome) => Promise<void> | undefined

/** Creates the function. It costs no turn of the event loop with a store that answers at once. */
export function createRecordOutcome<Claim extends ClaimedJob>(
  store: QueueStore<Claim>,
  { clock, signal, onError, onGivenUp }: OutcomesOptions<Claim>,
): RecordOutcome<Claim> {
  async function recordLater(claim: Claim, outcome: Outcome, error: unknown): Promise<void> {
    onError(error)
    for (let failures = 1; ; failures += 1) {
      await waitUnlessAborted(backoff(failures, STORE_BACKOFF))
      try {
        return await store.finish(claim, outcome)
      } catch (again) {
        onError(again)
        if (signal.aborted) return onGivenUp(claim)
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

  return (claim, outcome) => {
    try {
      return store.finish(claim, outcome)?.then(undefined, (error: unknown) => recordLater(claim, outcome, error))
    } catch (error) {
      return recordLater(claim, outcome, error)
    }
  }
}

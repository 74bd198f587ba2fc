/** One call of a handler, and what a handler that fails means. */

import { isUint8Array } from 'node:util/types'
import { backoff } from '../time/backoff.ts'
import type { Clock } from '../time/clock.ts'
import type { ClaimedJob, HandleJob, Outcome } from './queue.ts'

/** After a handler that failed. */
const HANDLER_BACKOFF = { firstMs: 1_000, maxMs: 60_000 } as const

/** Has a job handled. Never rejects: a handler that fails is a retry a little later, with the same retry state. */
export async function handleJob(
  handle: HandleJob,
  job: ClaimedJob,
  signal: AbortSignal,
  clock: Clock,
): Promise<Outcome> {
  try {
    const outcome: unknown = await handle(job, signal)
    if (isOutcome(outcome)) return outcome
  } catch {
    // The handler reports its own errors.
  }
  const retryAt = new Date(clock.now() + backoff(job.claimCount, HANDLER_BACKOFF))
  return job.retryState === undefined ? { retryAt } : { retryAt, retryState: job.retryState }
}

function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null) return false
  if ('complete' in value) return value.complete === true
  if ('retryState' in value && value.retryState !== undefined && !isUint8Array(value.retryState)) return false
  if ('retryAt' in value) return value.retryAt instanceof Date && !Number.isNaN(value.retryAt.getTime())
  return 'deadLetter' in value && typeof value.deadLetter === 'string'
}

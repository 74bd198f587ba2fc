/** One hand-out: what a handler makes of a job, and what a handler that fails means. */

import { isUint8Array } from 'node:util/types'
import type { Clock } from '../protocol/clock.ts'
import type { ClaimedJob, HandleJob, Outcome } from './queue.ts'

/** Has a job handled. Never rejects: a handler that does is a retry a little later, with the same state. */
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
    // What failed is for the handler to report.
  }
  const retryAt = clock.now() + Math.min(FIRST_RETRY_MS * 2 ** (job.deliveries - 1), LAST_RETRY_MS)
  return job.state === undefined ? { retryAt } : { retryAt, state: job.state }
}

const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 60_000

function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== 'object' || value === null) return false
  if ('done' in value) return value.done === true
  if ('state' in value && value.state !== undefined && !isUint8Array(value.state)) return false
  if ('retryAt' in value) return Number.isFinite(value.retryAt)
  return 'dead' in value && typeof value.dead === 'string'
}

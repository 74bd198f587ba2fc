/** What a handler returned, and what one that fails means. */

import { isUint8Array } from 'node:util/types'
import { backoff } from '../time/backoff.ts'
import type { Clock } from '../time/clock.ts'
import type { ClaimedJob, Outcome } from './queue.ts'

/** After a handler that failed. */
const HANDLER_BACKOFF = { firstMs: 1_000, maxMs: 60_000 } as const

/** The outcome that a handler returned. One that failed, or returned none, is a retry a little later, with the same retry state. */
export function readOutcome(result: unknown, { claimCount, retryState }: ClaimedJob, clock: Clock): Outcome {
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

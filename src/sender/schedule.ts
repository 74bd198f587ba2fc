/** When a message is tried again: a pure policy, for it to be looked at on its own. */

import { RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../protocol/limits.ts'
import { isTransient } from '../protocol/transient.ts'
import type { Attempt } from './api.ts'

/** The longest that the first delay can be, in milliseconds; its average is half of it. */
const FIRST_MS = 10_000

/** The longest delay, in milliseconds. */
const MOST_MS = 30 * 60_000

/** The shortest, in milliseconds. */
const LEAST_MS = 1_000

/**
 * When the last attempt may begin, in milliseconds after the first: so that its answer, too, is there within the four
 * hours ("Outbound event delivery", Errors).
 */
export const LAST_START_MS = RETRY_WINDOW_MS - RESPONSE_TIME_MS

/**
 * How long to wait after a failed round: exponential with full jitter, 0 to 10 s after the first round, twice as much
 * after each, up to 30 minutes; at least a second. The last delay is shortened to end inside the four hours.
 *
 * @param round How many rounds there were, from 1.
 * @param elapsedMs Since the first attempt began.
 * @param random A number from 0 to below 1.
 * @returns Milliseconds, or undefined to give up.
 */
export function nextDelay(round: number, elapsedMs: number, random: number): number | undefined {
  const left = LAST_START_MS - elapsedMs
  if (left < LEAST_MS) return undefined
  const most = Math.min(MOST_MS, FIRST_MS * 2 ** (round - 1))
  return Math.min(left, Math.max(LEAST_MS, Math.round(random * most)))
}

/**
 * Whether an attempt that failed is worth another: no answer, 408, 429 and every 5xx are; other statuses, a self-signed
 * certificate and a private address are final.
 */
export function isRetryable({ status, error }: Attempt): boolean {
  if (status === undefined) return error !== 'self_signed' && error !== 'private_address'
  return isTransient(status)
}

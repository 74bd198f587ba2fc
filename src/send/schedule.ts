/** Decides when a message is retried, and at which URLs. The functions have no side effects. */

import { backoff } from '../kit/backoff.ts'
import { isTransient } from '../kit/retry.ts'
import { RESPONSE_TIME_MS, RETRY_WINDOW_MS } from '../protocol/limits.ts'
import type { RetryState } from './retry-state.ts'
import type { Attempt, AttemptError } from './sender-types.ts'
import type { Target } from './webhooks.ts'

export const MAX_DELAY_MS: number = 30 * 60_000

const BACKOFF = { firstMs: 10_000, maxMs: MAX_DELAY_MS }

const MIN_DELAY_MS = 1_000

/**
 * The latest time at which a round may start, in milliseconds after the four hours began: the responses must also arrive within these hours
 * ("Outbound event delivery", Errors).
 */
export const LAST_START_MS: number = RETRY_WINDOW_MS - RESPONSE_TIME_MS

/**
 * Returns how long to wait after a failed round, in milliseconds: a random time between one second and a maximum. The maximum is 10 seconds
 * after the first round and doubles with each round, up to 30 minutes. The last wait is shortened so that its round still starts within the
 * four hours; after that round, the result is undefined.
 */
export function nextDelay(round: number, elapsedMs: number, random: number): number | undefined {
  const leftMs = LAST_START_MS - elapsedMs
  if (leftMs < MIN_DELAY_MS) return undefined
  return Math.min(leftMs, Math.max(MIN_DELAY_MS, backoff(round, { ...BACKOFF, random })))
}

/** How an attempt ended. */
interface AttemptEnd {
  readonly status?: number | undefined
  /** An {@link AttemptError}. */
  readonly error?: string | undefined
}

/** Errors that would recur at the next attempt. */
const FINAL_ERRORS: readonly (string | undefined)[] = [
  'self_signed',
  'private_address',
  'unexpected_continue',
] satisfies AttemptError[]

/** Returns whether a failed attempt is retried: after a 408, a 429, any 5xx, or an error that may not recur. Other statuses are final. */
export function isRetryable({ status, error }: AttemptEnd): boolean {
  return status === undefined ? !FINAL_ERRORS.includes(error) : isTransient(status)
}

/** Returns the targets that are due for an attempt. */
export function chooseTargets(targets: readonly Target[], { next }: RetryState, now: number): readonly Target[] {
  return targets.filter(({ id }) => {
    const at = next[id] ?? 0
    return at !== 'never' && at <= now
  })
}

/** Returns when the next round is due, in milliseconds since the epoch; undefined when every URL gave a final response. */
export function findNextTime(
  targets: readonly Target[],
  { next }: Pick<RetryState, 'next'>,
  now: number,
): number | undefined {
  const times = targets.map(({ id }) => next[id] ?? now).filter((time) => time !== 'never')
  return times.length === 0 ? undefined : Math.min(...times)
}

export type NextStep =
  | { readonly retryAt: Date; readonly state: RetryState }
  | { readonly failure: 'refused' | 'window_over'; readonly state: RetryState }

interface FailedRound {
  readonly targets: readonly Target[]
  readonly before: RetryState
  /** The targets that were tried, in the order of `attempts`. */
  readonly chosen: readonly Target[]
  readonly attempts: readonly Attempt[]
  readonly startedAt: number
  readonly now: number
  readonly random: number
  /** The targets that were due but not tried, because their circuits are open. Default: none. */
  readonly held?: readonly Target[]
}

/**
 * Decides what follows a failed round. Each URL that may still accept the message is retried at the scheduled time. If its `Retry-After`
 * asks for a later time, the URL is retried then, but within the four hours. A held URL is next tried at the scheduled time.
 */
export function planNextStep(round: FailedRound): NextStep {
  const { targets, before, chosen, attempts, startedAt, now, random, held = [] } = round
  const rounds = before.rounds + 1
  const delayMs = nextDelay(rounds, now - startedAt, random)
  const next: Record<string, number | 'never'> = { ...before.next }
  for (const { id } of held) next[id] = delayMs === undefined ? 'never' : now + delayMs
  for (const [index, { id }] of chosen.entries()) {
    const attempt = attempts[index] as Attempt
    const askedFor = Math.min(now + (attempt.retryAfterMs ?? 0), startedAt + LAST_START_MS)
    next[id] = isRetryable(attempt) && delayMs !== undefined ? Math.max(now + delayMs, askedFor) : 'never'
  }
  const all = [...before.attempts.map(withoutDetail), ...attempts]
  const state = { rounds, attempts: all, next, body: before.body }
  const at = findNextTime(targets, state, now)
  if (at !== undefined) return { retryAt: new Date(at), state }
  const wouldRetry = held.length > 0 || attempts.some(isRetryable)
  return { failure: delayMs === undefined && wouldRetry ? 'window_over' : 'refused', state }
}

function withoutDetail({ url, at, durationMs, ok, status, error }: Attempt): Attempt {
  const attempt = { url, at, durationMs, ok, body: '' }
  return status === undefined ? { ...attempt, error: error as AttemptError } : { ...attempt, status }
}

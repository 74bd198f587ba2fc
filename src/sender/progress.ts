/** How far a message has come: what a destination keeps with it in the queue between two rounds. */

import type { Attempt } from './api.ts'
import { isRetryable, LAST_START_MS, nextDelay } from './schedule.ts'
import type { Target } from './webhooks.ts'

/** How far a message has come. Plain JSON. */
export interface Progress {
  /** Rounds so far. */
  readonly rounds: number
  /** Every attempt so far. */
  readonly attempts: readonly Attempt[]
  /** When each URL that gave a final answer, or is to be left alone for a while, goes again: by its id. */
  readonly next: Readonly<Record<string, number | 'never'>>
}

/** Of a message that was never tried. */
const NOTHING: Progress = { rounds: 0, attempts: [], next: {} }

/** What comes after a round that nobody took. */
export type Step =
  | { readonly retryAt: number; readonly progress: Progress }
  | { readonly over: 'refused' | 'window_over'; readonly progress: Progress }

/** Reads what {@link writeProgress} wrote. */
export function readProgress(state: Uint8Array | undefined): Progress {
  return state === undefined ? NOTHING : JSON.parse(Buffer.from(state).toString())
}

/** Progress, for the queue to keep. */
export function writeProgress(progress: Progress): Uint8Array {
  return Buffer.from(JSON.stringify(progress))
}

/** The URLs whose turn it is. */
export function chooseTargets(targets: readonly Target[], { next }: Progress, now: number): readonly Target[] {
  return targets.filter(({ id }) => {
    const at = next[id] ?? 0
    return at !== 'never' && at <= now
  })
}

/**
 * Decides what comes after a round that failed: the URLs that could still take the message go again at the time of the
 * schedule, or later where `Retry-After` asks for it, but inside the four hours.
 *
 * @param firstAt When the first attempt began, in milliseconds since the epoch; `now` likewise.
 */
export function nextStep(
  targets: readonly Target[],
  before: Progress,
  chosen: readonly Target[],
  attempts: readonly Attempt[],
  { firstAt, now, random }: { readonly firstAt: number; readonly now: number; readonly random: number },
): Step {
  const rounds = before.rounds + 1
  const delay = nextDelay(rounds, now - firstAt, random)
  const latest = firstAt + LAST_START_MS
  const next: Record<string, number | 'never'> = { ...before.next }
  for (const [index, { id }] of chosen.entries()) {
    const attempt = attempts[index] as Attempt
    const asked = Math.min(now + (attempt.retryAfterMs ?? 0), latest)
    next[id] = isRetryable(attempt) && delay !== undefined ? Math.max(now + delay, asked) : 'never'
  }
  const progress = { rounds, attempts: [...before.attempts, ...attempts], next }
  const times = targets.map(({ id }) => next[id] ?? now).filter((time) => time !== 'never')
  if (times.length > 0) return { retryAt: Math.min(...times), progress }
  return { over: attempts.some(isRetryable) ? 'window_over' : 'refused', progress }
}

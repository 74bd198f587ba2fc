/** How far a message has come: what a destination keeps with it in the queue between two rounds. */

import type { Attempt, AttemptError } from './api.ts'
import { isRetryable, LAST_START_MS, nextDelay } from './schedule.ts'
import type { Target } from './webhooks.ts'

/** How far a message has come. Plain JSON. */
export interface Progress {
  /** Rounds so far. */
  readonly rounds: number
  /** Every attempt so far; those before the latest round without what was said. */
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

/**
 * An attempt as the queue keeps it: at which URL, when, how long, its status or error, and what was said: the beginning
 * of the answer, or the reason of the error.
 */
type Kept = readonly [index: number, at: number, durationMs: number, outcome: number | AttemptError, said?: string]

/** Progress as the queue keeps it: small, because while an endpoint is dead it stays there for hours. */
interface State {
  readonly rounds: number
  /** The ids of the URLs that {@link Kept} counts. */
  readonly ids: readonly string[]
  readonly kept: readonly Kept[]
  readonly next: Progress['next']
}

/** Progress, for the queue to keep. */
export function writeProgress({ rounds, attempts, next }: Progress, targets: readonly Target[]): Uint8Array {
  const kept = attempts.map(({ url, at, durationMs, status, error, reason, body }): Kept => {
    const index = targets.findIndex(({ shown }) => shown === url)
    const said = status === undefined ? reason : body
    return [index, at, durationMs, status ?? (error as AttemptError), ...(said ? [said] : [])] as unknown as Kept
  })
  const state: State = { rounds, ids: targets.map(({ id }) => id), kept, next }
  return encoder.encode(JSON.stringify(state))
}

/** Reads what {@link writeProgress} wrote. What cannot be read is as if the message had never been tried. */
export function readProgress(state: Uint8Array | undefined, targets: readonly Target[]): Progress {
  if (state === undefined) return NOTHING
  try {
    const { rounds, ids, kept, next } = JSON.parse(decoder.decode(state)) as State
    const urls = ids.map((id) => targets.find((target) => target.id === id)?.shown)
    return { rounds, attempts: kept.map((each) => restore(each, urls)), next: { ...next } }
  } catch {
    return NOTHING
  }
}

function restore([index, at, durationMs, outcome, said]: Kept, urls: readonly (string | undefined)[]): Attempt {
  const attempt = { url: urls[index] ?? 'a URL that is no longer there', at, durationMs, ok: false }
  if (typeof outcome === 'number') return { ...attempt, status: outcome, body: said ?? '' }
  return { ...attempt, error: outcome, ...(said !== undefined && { reason: said }), body: '' }
}

/** An attempt of a round that is past: what was said is let go. */
function forget({ url, at, durationMs, ok, status, error }: Attempt): Attempt {
  return {
    url,
    at,
    durationMs,
    ok,
    ...(status === undefined ? { error: error as AttemptError } : { status }),
    body: '',
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

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
  const progress = { rounds, attempts: [...before.attempts.map(forget), ...attempts], next }
  const times = targets.map(({ id }) => next[id] ?? now).filter((time) => time !== 'never')
  if (times.length > 0) return { retryAt: Math.min(...times), progress }
  return { over: attempts.some(isRetryable) ? 'window_over' : 'refused', progress }
}

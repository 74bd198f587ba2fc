/** The retry state of a message: what the queue stores with its job between rounds, and in which form. */

import { describeError } from '../protocol/error.ts'
import type { Attempt, AttemptError } from './sender-types.ts'
import type { Target } from './webhooks.ts'

export interface RetryState {
  readonly rounds: number
  readonly attempts: readonly Attempt[]
  /**
   * The earliest time of the next attempt at each target, in milliseconds since the epoch, or `never` after a final response; keyed by
   * target id.
   */
  readonly next: Readonly<Record<string, number | 'never'>>
  /** When the four hours began, in milliseconds since the epoch; set for a message that was held before its first round. */
  readonly startedAt?: number | undefined
  /** The message after `filter` and `transform`; each attempt posts this text. */
  readonly body?: string | undefined
  /** The error of `filter` or `transform`. */
  readonly thrown?: StoredThrown | undefined
}

interface StoredThrown {
  readonly message: string
  readonly stack?: string
}

export function toStoredThrown(thrown: unknown): StoredThrown {
  const message = describeError(thrown).slice(0, 500)
  try {
    const stack: unknown = thrown instanceof Error ? thrown.stack : undefined
    return typeof stack === 'string' ? { message, stack: stack.slice(0, 2_000) } : { message }
  } catch {
    return { message } // The getter of `stack` threw.
  }
}

const INITIAL: RetryState = { rounds: 0, attempts: [], next: {} }

/**
 * The retry state as JSON in the queue. It is compact, because it stays there for hours while an endpoint is unreachable. `kept` holds the
 * attempts; each names its URL by an index into `ids`, because the targets may have changed when the state is read.
 */
interface StoredState extends Omit<RetryState, 'attempts'> {
  readonly ids: readonly string[]
  readonly kept: readonly StoredAttempt[]
}

/**
 * An attempt in a stored state. `at` is in milliseconds since the epoch. `outcome` is the error or the status of the
 * response. `detail` is the reason of the error or the response body.
 */
type StoredAttempt = readonly [
  idIndex: number,
  at: number,
  durationMs: number,
  outcome: number | AttemptError,
  ...detail: string[],
]

export function writeRetryState({ rounds, attempts, ...rest }: RetryState, targets: readonly Target[]): Uint8Array {
  const ids = targets.map(({ id }) => id)
  const storedAttempts = attempts.map((attempt) => writeAttempt(attempt, targets))
  return encoder.encode(JSON.stringify({ rounds, ids, kept: storedAttempts, ...rest } satisfies StoredState))
}

function writeAttempt(attempt: Attempt, targets: readonly Target[]): StoredAttempt {
  const { url, at, durationMs, status, error, reason, body } = attempt
  const idIndex = targets.findIndex(({ shown }) => shown === url)
  const detail = status === undefined ? reason : body
  return [idIndex, at.getTime(), durationMs, status ?? (error as AttemptError), ...(detail ? [detail] : [])]
}

/** Reads a stored state. If the state is missing or unreadable, returns the state before the first round. */
export function readRetryState(bytes: Uint8Array | undefined, targets: readonly Target[]): RetryState {
  if (bytes === undefined) return INITIAL
  try {
    const { rounds, ids, kept, next, startedAt, body, thrown }: StoredState = JSON.parse(decoder.decode(bytes))
    const urls = ids.map((id) => targets.find((target) => target.id === id)?.shown)
    const attempts = kept.map((attempt) => readAttempt(attempt, urls))
    return { rounds, attempts, next: { ...next }, startedAt, body, thrown }
  } catch {
    return INITIAL
  }
}

function readAttempt(
  [idIndex, at, durationMs, outcome, detail]: StoredAttempt,
  urls: readonly (string | undefined)[],
): Attempt {
  const attempt = { url: urls[idIndex] ?? 'a URL that was removed', at: new Date(at), durationMs, ok: false }
  if (typeof outcome === 'number') return { ...attempt, status: outcome, body: detail ?? '' }
  const failed = { ...attempt, error: outcome, body: '' }
  return detail === undefined ? failed : { ...failed, reason: detail }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()

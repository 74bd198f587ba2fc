/** Turns the outcome of one POST into an attempt. */

import { type AttemptError, explainConnectionError } from '../kit/connection-error.ts'
import type { PostOutcome } from '../kit/post.ts'
import type { Attempt } from './sender-types.ts'
import type { Target } from './webhooks.ts'

const EXCERPT_BYTES = 256

export function toAttempt(target: Target, outcome: PostOutcome, at: Date, durationMs: number): Attempt {
  const { status, retryAfterMs, error } = outcome
  const { shown: url } = target
  const body = outcome.body.toString('utf8', 0, EXCERPT_BYTES)
  if (status === undefined) return { url, at, durationMs, ok: false, ...explainError(error, target), body }
  const ok = status >= 200 && status < 300
  if (ok || retryAfterMs === undefined) return { url, at, durationMs, ok, status, body }
  return { url, at, durationMs, ok, status, retryAfterMs, body }
}

/** Classifies a connection error, and explains it without showing the query of the URL. */
export function explainError(
  thrown: unknown,
  { path, shown }: Pick<Target, 'path' | 'shown'>,
): { readonly error: AttemptError; readonly reason: string } {
  const { error, rule, found, advice } = explainConnectionError(thrown)
  // The error of a dispatcher may quote the path, whose query may hold a token.
  const safe = path.includes('?') ? found.replaceAll(path, shown) : found
  return { error, reason: `${rule}. Got ${safe}. ${advice}` }
}

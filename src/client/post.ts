/** One POST of a batch, and what came of it. */

import { BATCH_RESPONSE_LIMIT } from '../protocol/limits.ts'
import { type DispatcherLike, type PendingPost, type PostOutcome, type PostTiming, post } from '../protocol/post.ts'

/** Where batches go, and how. */
export interface Route extends PostTiming {
  readonly dispatcher: DispatcherLike
  readonly origin: string
  readonly path: string
  /** Names and values in turns. */
  readonly headers: readonly string[]
}

/**
 * Posts a batch.
 *
 * @param attempt 1 for the first time; later ones say in `X-Retry-Count` how many there were.
 * @param done Called once, never before this returns.
 */
export function postBatch(
  { dispatcher, origin, path, headers: fixed, ...timing }: Route,
  body: Buffer,
  attempt: number,
  done: (outcome: PostOutcome) => void,
): PendingPost {
  const headers = attempt === 1 ? [...fixed] : [...fixed, 'X-Retry-Count', String(attempt - 1)]
  const request = { origin, path, headers, body, responseLimit: BATCH_RESPONSE_LIMIT }
  return post(dispatcher, request, timing, (outcome) => queueMicrotask(() => done(outcome)))
}

/** What became of a batch, for a person. The message of a network error may quote what came over the wire; its code does not. */
export function describe({ status, error }: PostOutcome): string {
  if (status !== undefined) return `status ${status}`
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  if (code === 'ETIMEDOUT') return 'no answer in time'
  return typeof code === 'string' ? code : 'the request failed'
}

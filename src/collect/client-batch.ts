/** Posts one batch of calls, and retries it after failures until it is delivered or abandoned. */

import { backoff } from '../kit/backoff.ts'
import type { Clock } from '../kit/clock.ts'
import { explainConnectionError } from '../kit/connection-error.ts'
import { type DispatcherLike, type PendingPost, type PostOutcome, type PostTiming, post } from '../kit/post.ts'
import { isTransient } from '../kit/retry.ts'
import { BATCH_RESPONSE_LIMIT, BATCH_SENT_LIMIT } from '../protocol/limits.ts'
import { BatchError, type BatchFailure, readFailures, showCount } from './batch-result.ts'
import { log } from './client-report.ts'
import type { BufferedCall } from './recorded-call.ts'

export interface BatchRoute {
  readonly dispatcher: DispatcherLike
  readonly origin: string
  readonly path: string
  /** The headers of a request, as alternating names and values. */
  readonly headers: readonly string[]
  readonly timing: PostTiming
  readonly maxRetries: number
  readonly random: () => number
  /** The clock for the waits between attempts. Its timers do not keep the process alive. */
  readonly clock: Clock
}

const BACKOFF = { firstMs: 1_000, maxMs: 60_000 }

/** The maximum `Retry-After` to follow, in milliseconds: a date far in the future must not hold the calls for a day. */
const RETRY_AFTER_MS = 5 * 60_000

/** Writes a batch as JSON. `calls` is the JSON of the calls, joined with commas. */
function writeBatch(calls: string, sentAt: string): string {
  return `{"batch":[${calls}],"sentAt":"${sentAt}"}`
}

/**
 * The maximum size of the calls of a batch, in bytes. A comma is counted with each call. No comma follows the last call, so the limit is
 * one byte higher.
 */
export const CALLS_BYTES: number = BATCH_SENT_LIMIT - writeBatch('', '2026-01-15T09:30:00.000Z').length + 1

const STOPPED = new Error('The client was closed.')

/**
 * Posts calls as one batch. Each attempt posts the same bytes.
 *
 * @param name Names the batch in the debug log.
 * @param done Receives the calls that were not delivered: none after a success.
 * @returns A function that stops posting. `done` is not called afterwards.
 */
export function postBatch(
  route: BatchRoute,
  calls: readonly BufferedCall[],
  name: string,
  done: (failures: readonly BatchFailure[]) => void,
): () => void {
  const { dispatcher, origin, path, timing, clock } = route
  const body = Buffer.from(writeBatch(calls.map(({ json }) => json).join(','), new Date(clock.now()).toISOString()))
  if (log.enabled) log('%s: flushed, calls %d, bytes %d', name, calls.length, body.length)
  let attempts = 0
  let isStopped = false
  let attempt: PendingPost | undefined
  let timer: unknown

  function startAttempt(): void {
    const headers = attempts === 0 ? route.headers : [...route.headers, 'X-Retry-Count', String(attempts)]
    attempts++
    const request = { origin, path, headers, body, responseLimit: BATCH_RESPONSE_LIMIT }
    attempt = post(dispatcher, request, timing, (outcome) => queueMicrotask(() => endAttempt(outcome)))
  }

  function endAttempt(outcome: PostOutcome): void {
    if (isStopped) return
    const { status } = outcome
    if (log.enabled) log('%s: attempt %d: %s', name, attempts, describeOutcome(outcome))
    if (status !== undefined && status >= 200 && status < 300) {
      done(readFailures(outcome.body.toString(), calls, attempts))
    } else if (status !== undefined && !isTransient(status)) {
      giveUp(outcome, 'batch_refused', 'The collection service refused the batch')
    } else if (attempts > route.maxRetries) {
      giveUp(outcome, 'out_of_retries', 'No attempt to post the batch succeeded')
    } else retry(outcome.retryAfterMs ?? 0)
  }

  function retry(retryAfterMs: number): void {
    const backoffMs = backoff(attempts, { ...BACKOFF, random: route.random() })
    const ms = Math.max(backoffMs, Math.min(retryAfterMs, RETRY_AFTER_MS))
    if (log.enabled) log('%s: retrying in %d ms', name, ms)
    timer = clock.setTimeout(startAttempt, ms)
  }

  function giveUp(outcome: PostOutcome, reason: BatchError['reason'], fault: string): void {
    if (log.enabled) log('%s: given up, %s', name, reason)
    const found = `${describeOutcome(outcome)} after ${showCount(attempts, 'attempt')}`
    const { status } = outcome
    const details = status === undefined ? { attempts } : { attempts, status }
    done([{ error: new BatchError(reason, `${fault}. Got ${found}. ${chooseAdvice(outcome)}`, details), calls }])
  }

  startAttempt()
  return () => {
    isStopped = true
    attempt?.stop(STOPPED)
    if (timer !== undefined) clock.clearTimeout(timer)
  }
}

/** Describes an attempt by its status or error code, because the message of a network error may quote bytes from the wire. */
function describeOutcome({ status, error }: PostOutcome): string {
  if (status !== undefined) return `status ${status}`
  const { error: kind, code } = explainConnectionError(error)
  if (kind === 'timeout') return 'a timeout'
  return /^[A-Z\d_]+$/.test(code) ? code : 'a network error'
}

function chooseAdvice({ status, error }: PostOutcome): string {
  if (status === undefined) return explainConnectionError(error).advice
  const isRedirect = status >= 300 && status < 400
  if (isRedirect) return 'Set `endpoint` to the target of the redirect: redirects are not followed.'
  return ADVICE[status] ?? 'See the log of the service, and check that `endpoint` is the URL for batches.'
}

const WHOLE_URL = "Set `endpoint` to the full URL for batches, for example 'https://analytics.example.com/v1/batch'."

const ADVICE: Readonly<Record<number, string>> = {
  401: 'Check the write key.',
  403: 'Check the write key and its permissions.',
  404: WHOLE_URL,
  405: WHOLE_URL,
  413: 'Lower `flushAt`, or raise the limit of the service and of the proxies in front of it.',
  429: 'Raise `flushAfterMs` and `flushAt`, or the rate limit of the service.',
}

/** One POST through a dispatcher of undici, and what came of it: for the sender and the client. Loads no HTTP client. */

import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Clock } from './clock.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import { RESPONSE_LIMIT } from './limits.ts'
import { readRetryAfter } from './retry-after.ts'

/** Anything that sends requests as undici's dispatchers do. */
export type DispatcherLike = Pick<Dispatcher, 'dispatch'>

/** What is posted, and where to. */
export interface PostRequest {
  readonly origin: string
  readonly path: string
  /** Names and values in turns. */
  readonly headers: readonly string[]
  /** Bytes, or a stream of them, which travels in chunks. */
  readonly body: Uint8Array | Readable
  /** Most bytes of the answer that are read; one that is longer ends there. Default: 64 KiB. */
  readonly responseLimit?: number
}

/** How long it may take, by which clock. */
export interface PostTiming {
  readonly deadlines: Deadlines
  readonly clock: Clock
}

/** What came of it: an answer, or the error in place of one. */
export interface PostOutcome {
  /** The status of a complete answer. */
  readonly status: number | undefined
  /** What `Retry-After` of it asked for, in milliseconds. */
  readonly retryAfterMs: number | undefined
  /** The body of the answer as far as it was read, `responseLimit` bytes at most. */
  readonly body: Buffer
  /** What the connection failed with, or what it was stopped with. */
  readonly error: unknown
}

/** A POST under way. */
export interface PendingPost {
  /** Ends it with an error. Does nothing once it has ended. */
  stop(error: Error): void
}

/** What a POST fails with when its time is up. */
const TIMED_OUT: Error = Object.assign(new Error('No complete answer in time.'), { code: 'ETIMEDOUT' })

/**
 * Posts, following no redirect.
 *
 * @param done Called once, never before this returns. undici may be in the middle of its work then: whatever posts again
 *   does so in a microtask of its own.
 */
export function post(
  dispatcher: DispatcherLike,
  { origin, path, headers, body, responseLimit = RESPONSE_LIMIT }: PostRequest,
  timing: PostTiming,
  done: (outcome: PostOutcome) => void,
): PendingPost {
  const pending = new Exchange(timing, responseLimit, done)
  const options = {
    origin,
    path,
    method: 'POST',
    headers: headers as string[],
    body,
    headersTimeout: 0, // The deadline covers every phase; these would cover one each.
    bodyTimeout: 0,
  } as const
  try {
    dispatcher.dispatch(options, pending)
  } catch (error) {
    pending.onResponseError(undefined, error)
  }
  pending.isReturned = true
  return pending
}

/**
 * The handler that undici calls. Hot path: undici's `request()` makes a stream of the answer, and an AbortSignal for each
 * request is dear; this reads the few bytes of an answer as they come.
 */
class Exchange implements PendingPost, Dispatcher.DispatchHandler {
  /** Whether the caller of {@link post} has it in hand. */
  isReturned = false
  readonly #timing: PostTiming
  readonly #responseLimit: number
  readonly #deadline: Deadline
  #done: ((outcome: PostOutcome) => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #retryAfter: unknown
  #chunks: Buffer[] = []
  #size = 0

  constructor(timing: PostTiming, responseLimit: number, done: (outcome: PostOutcome) => void) {
    this.#timing = timing
    this.#responseLimit = responseLimit
    this.#done = done
    this.#deadline = timing.deadlines.set(() => this.stop(TIMED_OUT))
  }

  stop(error: Error): void {
    this.#settle(undefined, error)
    this.#controller?.abort(error)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It may have waited for a connection until it was too late.
    if (this.#done === undefined) controller.abort(TIMED_OUT)
    else this.#controller = controller
  }

  onResponseStart(_controller: unknown, status: number, headers: Readonly<Record<string, unknown>>): void {
    this.#status = status // An informational one first, perhaps; the last one counts.
    this.#retryAfter = headers['retry-after']
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#size <= this.#responseLimit) return
    this.onResponseEnd()
    controller.abort(ENOUGH)
  }

  onResponseEnd(): void {
    this.#settle(this.#status, undefined)
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.#settle(undefined, error)
  }

  #settle(status: number | undefined, error: unknown): void {
    const done = this.#done
    if (done === undefined) return
    this.#done = undefined
    const { clock, deadlines } = this.#timing
    deadlines.clear(this.#deadline)
    const retryAfterMs = status === undefined ? undefined : readRetryAfter(this.#retryAfter, clock.now())
    const body = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks)
    const outcome = { status, retryAfterMs, body: body.subarray(0, this.#responseLimit), error }
    if (this.isReturned) done(outcome)
    else queueMicrotask(() => done(outcome))
  }
}

const ENOUGH = new Error('More of the answer than is read.')

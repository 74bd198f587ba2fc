/**
 * Sends one POST request through an undici dispatcher, for the sender, the client and the command. Imports only the
 * types of undici.
 */

import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { RESPONSE_LIMIT } from '../protocol/limits.ts'
import { ArrivingBytes } from './arriving-bytes.ts'
import type { Clock } from './clock.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import { readRetryAfter } from './retry.ts'

/** Any undici dispatcher, or an object that sends requests like one. */
export type DispatcherLike = Pick<Dispatcher, 'dispatch'>

export interface PostRequest {
  readonly origin: string
  readonly path: string
  readonly method?: string
  /** A list in which names and values alternate, or an object with a value for each name. */
  readonly headers: readonly string[] | Readonly<Record<string, string>>
  /** Bytes, or a stream, which is sent in chunks without a length. */
  readonly body: Uint8Array | Readable
  readonly responseLimit?: number
}

export interface PostTiming {
  readonly deadlines: Deadlines
  readonly clock: Clock
}

export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

export interface PostOutcome {
  readonly status: number | undefined
  readonly headers: ResponseHeaders
  readonly retryAfterMs: number | undefined
  readonly body: Buffer
  readonly error: unknown
}

export interface PendingPost {
  /** Ends the POST with this error. Has no effect once the POST has ended. */
  stop(error: Error): void
}

/** Posts a request, and calls `done` once with the outcome. Does not follow redirects. */
export function post(
  dispatcher: DispatcherLike,
  { origin, path, method = 'POST', headers, body, responseLimit = RESPONSE_LIMIT }: PostRequest,
  timing: PostTiming,
  done: (outcome: PostOutcome) => void,
): PendingPost {
  const pending = new PostHandler(timing, responseLimit, done)
  const options = {
    origin,
    path,
    method: method as Dispatcher.HttpMethod,
    headers: headers as string[],
    body,
    headersTimeout: 0, // Turned off, because each of these timeouts covers one phase, and the deadline covers all of them.
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
 * The handler whose methods undici calls. It is used for speed: `request()` of undici creates a stream for each
 * response, and an AbortSignal for each request is expensive.
 */
class PostHandler implements PendingPost, Dispatcher.DispatchHandler {
  /** Whether `post` has returned this object to the caller. Until then, `done` is not called. */
  isReturned = false
  readonly #timing: PostTiming
  readonly #responseLimit: number
  readonly #deadline: Deadline
  #done: ((outcome: PostOutcome) => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #headers: ResponseHeaders = {}
  readonly #body: ArrivingBytes = new ArrivingBytes()

  constructor(timing: PostTiming, responseLimit: number, done: (outcome: PostOutcome) => void) {
    this.#timing = timing
    this.#responseLimit = responseLimit
    this.#done = done
    this.#deadline = timing.deadlines.set(() => this.stop(this.#timedOut()))
  }

  stop(error: Error): void {
    this.#complete(undefined, error)
    this.#controller?.abort(error)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The deadline may have passed while the request waited for a connection.
    if (this.#done === undefined) controller.abort(this.#timedOut())
    else this.#controller = controller
  }

  onResponseStart(_controller: unknown, status: number, headers: ResponseHeaders): void {
    this.#status = status // Informational responses may come first; the last response counts.
    this.#headers = headers
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body.add(chunk)
    if (this.#body.size <= this.#responseLimit) return
    this.onResponseEnd()
    controller.abort(CUT_OFF)
  }

  onResponseEnd(): void {
    this.#complete(this.#status, undefined)
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.#complete(undefined, error)
  }

  #timedOut(): Error {
    if (this.#controller === undefined) return timeout('a timeout before a connection')
    return timeout(this.#status < 200 ? 'a timeout before a response' : 'a timeout before the end of the response')
  }

  #complete(status: number | undefined, error: unknown): void {
    const done = this.#done
    if (done === undefined) return
    this.#done = undefined
    const { clock, deadlines } = this.#timing
    deadlines.clear(this.#deadline)
    const retryAfterMs = status === undefined ? undefined : readRetryAfter(this.#headers['retry-after'], clock.now())
    const body = this.#body.take().subarray(0, this.#responseLimit)
    const outcome = { status, headers: this.#headers, retryAfterMs, body, error }
    if (this.isReturned) done(outcome)
    else queueMicrotask(() => done(outcome))
  }
}

/** @param found The phase in which the time ran out. Follows the word "Got" in the error. */
function timeout(found: string): Error {
  return Object.assign(new Error(found), { code: 'ETIMEDOUT' })
}

const CUT_OFF = new Error('The response is longer than its limit.')

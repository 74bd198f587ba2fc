/** One POST of a batch, and what came of it. */

import type { Dispatcher } from 'undici'
import type { Clock } from '../protocol/clock.ts'
import type { Deadline, Deadlines } from '../protocol/deadlines.ts'
import { RESPONSE_LIMIT } from '../protocol/limits.ts'
import { readRetryAfter } from '../protocol/retry-after.ts'
import type { DispatcherLike } from './options.ts'

/** Where batches go, and how. */
export interface Route {
  readonly dispatcher: DispatcherLike
  readonly origin: string
  readonly path: string
  /** Names and values in turns. */
  readonly headers: readonly string[]
  readonly deadlines: Deadlines
  readonly clock: Clock
}

/** What came of it: an answer, or the reason why there is none. */
export type Outcome =
  | { readonly status: number; readonly body: string; readonly retryAfterMs: number | undefined }
  | { readonly status: undefined; readonly reason: string }

/** A request under way. */
export interface Post {
  /** Ends it. Its outcome is not told any more. */
  stop(): void
}

/**
 * Posts a body, following no redirect.
 *
 * @param attempt 1 for the first time; later ones say in `X-Retry-Count` how many there were.
 * @param done Called once, never before this returns.
 */
export function post(route: Route, body: Buffer, attempt: number, done: (outcome: Outcome) => void): Post {
  const { dispatcher, origin, path } = route
  const headers = attempt === 1 ? [...route.headers] : [...route.headers, 'X-Retry-Count', String(attempt - 1)]
  const pending = new PendingPost(route, done)
  try {
    dispatcher.dispatch({ origin, path, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }, pending)
  } catch (error) {
    pending.onResponseError(undefined, error)
  }
  return pending
}

/**
 * The handler that undici calls. Hot path: undici's `request()` makes a stream of the answer, and an AbortSignal for each
 * request is dear.
 */
class PendingPost implements Post, Dispatcher.DispatchHandler {
  readonly #route: Route
  readonly #deadline: Deadline
  #done: ((outcome: Outcome) => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #retryAfter: unknown
  #chunks: Buffer[] = []
  #size = 0

  constructor(route: Route, done: (outcome: Outcome) => void) {
    this.#route = route
    this.#done = done
    this.#deadline = route.deadlines.set(() => this.#giveUp())
  }

  stop(): void {
    this.#end()
    this.#controller?.abort(OVER)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // It may have waited for a connection until it was too late.
    if (this.#done === undefined) controller.abort(OVER)
    else this.#controller = controller
  }

  onResponseStart(_controller: unknown, status: number, headers: Readonly<Record<string, unknown>>): void {
    this.#status = status // An informational one first, perhaps; the last one counts.
    this.#retryAfter = headers['retry-after']
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size <= RESPONSE_LIMIT) {
      this.#chunks.push(chunk)
      return
    }
    this.onResponseEnd()
    controller.abort(OVER)
  }

  onResponseEnd(): void {
    const retryAfterMs = readRetryAfter(this.#retryAfter, this.#route.clock.now())
    this.#settle({ status: this.#status, body: Buffer.concat(this.#chunks).toString(), retryAfterMs })
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.#settle({ status: undefined, reason: explain(error) })
  }

  #giveUp(): void {
    this.#settle({ status: undefined, reason: 'no answer in time' })
    this.#controller?.abort(OVER)
  }

  #settle(outcome: Outcome): void {
    const done = this.#end()
    if (done !== undefined) queueMicrotask(() => done(outcome))
  }

  #end(): ((outcome: Outcome) => void) | undefined {
    const done = this.#done
    this.#done = undefined
    this.#route.deadlines.clear(this.#deadline)
    return done
  }
}

const OVER = new Error('The request is over.')

/** The code of a network error. Its message may quote what came over the wire. */
function explain(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'the request failed'
}

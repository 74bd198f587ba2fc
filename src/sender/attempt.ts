/** One POST to one URL, and what happened. */

import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Clock } from '../protocol/clock.ts'
import type { Deadline, Deadlines } from '../protocol/deadlines.ts'
import { RESPONSE_LIMIT } from '../protocol/limits.ts'
import { readRetryAfter } from '../protocol/retry-after.ts'
import type { Attempt, AttemptError } from './api.ts'
import { explain } from './failure.ts'
import type { Target } from './webhooks.ts'

/** Most bytes of a body that an {@link Attempt} quotes. */
const EXCERPT = 256

/** What a POST goes through. */
export interface Transport {
  readonly clock: Clock
  readonly deadlines: Deadlines
  /** Those under way. */
  readonly pending: Set<PendingAttempt>
}

/** What is posted. Headers are names and values in turns. */
export interface Post {
  readonly headers: string[]
  /** Bytes, or a stream of them, which travels in chunks. */
  readonly body: Uint8Array | Readable
}

/** Anything that sends requests as undici's dispatchers do. */
export type DispatcherLike = Pick<Dispatcher, 'dispatch'>

/** Posts, following no redirect. Never rejects: whatever happens is in the attempt. */
export function attempt(
  dispatcher: DispatcherLike,
  target: Target,
  post: Post,
  transport: Transport,
): Promise<Attempt> {
  return new Promise((resolve) => {
    const pending = new PendingAttempt(target, transport, resolve)
    const { origin, path } = target
    try {
      dispatcher.dispatch({ origin, path, method: 'POST', ...post, headersTimeout: 0, bodyTimeout: 0 }, pending)
    } catch (error) {
      pending.onResponseError(undefined, error)
    }
  })
}

/**
 * A POST under way: the handler that undici calls. Hot path: undici's `request()` makes a stream of the answer, and an
 * AbortSignal for each POST is dear; this reads the few bytes of an answer as they come.
 */
export class PendingAttempt implements Dispatcher.DispatchHandler {
  readonly #target: Target
  readonly #transport: Transport
  readonly #at: number
  readonly #start: number
  readonly #deadline: Deadline
  #resolve: ((attempt: Attempt) => void) | undefined
  #onOver: (() => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  #status = 0
  #retryAfter: unknown
  #size = 0
  #excerpt = ''

  constructor(target: Target, transport: Transport, resolve: (attempt: Attempt) => void) {
    const { clock, deadlines, pending } = transport
    this.#target = target
    this.#transport = transport
    this.#resolve = resolve
    this.#at = clock.now()
    this.#start = clock.monotonic()
    this.#deadline = deadlines.set(() => this.stop('timeout', 'No complete answer in time.'))
    pending.add(this)
  }

  /** Ends it before there is an answer. */
  stop(error: AttemptError, reason: string): void {
    this.#fail(error, reason)
    this.#controller?.abort(STOPPED)
  }

  /** Resolves when it has ended. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      this.#onOver = resolve
    })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#resolve === undefined)
      controller.abort(STOPPED) // It waited for a connection until it was too late.
    else this.#controller = controller
  }

  onResponseStart(_controller: unknown, status: number, headers: Readonly<Record<string, unknown>>): void {
    if (status < 200) return // Informational: the answer is still to come.
    this.#status = status
    this.#retryAfter = headers['retry-after']
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#size < EXCERPT) this.#excerpt += chunk.toString('utf8', 0, EXCERPT - this.#size)
    this.#size += chunk.length
    if (this.#size <= RESPONSE_LIMIT) return
    this.onResponseEnd()
    controller.abort(STOPPED)
  }

  onResponseEnd(): void {
    const status = this.#status
    const ok = status >= 200 && status < 300
    const retryAfterMs = ok ? undefined : readRetryAfter(this.#retryAfter, this.#transport.clock.now())
    this.#settle({ ok, status, ...(retryAfterMs !== undefined && { retryAfterMs }) })
  }

  onResponseError(_controller: unknown, thrown: unknown): void {
    const { error, reason } = explain(thrown)
    this.#fail(error, reason)
  }

  #fail(error: AttemptError, reason: string): void {
    this.#settle({ ok: false, error, reason })
  }

  #settle(outcome: Pick<Attempt, 'ok' | 'status' | 'error' | 'reason' | 'retryAfterMs'>): void {
    const resolve = this.#resolve
    if (resolve === undefined) return
    this.#resolve = undefined
    const { clock, deadlines, pending } = this.#transport
    deadlines.clear(this.#deadline)
    pending.delete(this)
    const durationMs = Math.round(clock.monotonic() - this.#start)
    resolve({ url: this.#target.shown, at: this.#at, durationMs, ...outcome, body: this.#excerpt })
    this.#onOver?.()
  }
}

const STOPPED = new Error('The attempt is over.')

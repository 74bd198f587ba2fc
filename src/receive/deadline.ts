/** The deadline of a request, or of one attempt of the inbox: the one place where work races with time. */

import { isThenable } from '../kit/callbacks.ts'
import type { Deadlines, Deadline as Timer } from '../kit/deadlines.ts'
import { HooklineError } from '../protocol/error.ts'

/** Makes the error of a stage that does not end in time. */
export type Late = () => HooklineError

/** The stages of a message, by the error that ends each when it takes too long. */
export const LATE = {
  body: () => new HooklineError('body_timeout', 'The body must arrive in time. Got a part of it. Send it again.'),
  secret: () =>
    new HooklineError(
      'secret_unavailable',
      'The secret provider must answer in time. Got no answer. Make it answer or fail sooner.',
    ),
  inbox: () =>
    new HooklineError('inbox_unavailable', 'The inbox must store the message in time. Got no answer. Send it again.'),
  dedupe: () =>
    new HooklineError('dedupe_unavailable', 'The dedupe store must answer in time. Got no answer. Send it again.'),
  confirm: () =>
    new HooklineError('dedupe_unavailable', 'The dedupe store must confirm in time. Got no answer. Check the store.'),
  handlers: () =>
    new HooklineError(
      'handler_timeout',
      'The handlers must finish in time. Got no result. Use an `inbox` for slow handlers, or raise its `timeoutMs`.',
    ),
} satisfies Readonly<Record<string, Late>>

export class Deadline {
  #late: Late
  #error: HooklineError | undefined
  #abort: AbortController | undefined
  #interrupt: ((error: HooklineError) => void) | undefined
  #timer: Timer | undefined
  #isOver = false
  readonly #deadlines: Deadlines
  readonly #since: number | undefined

  /** @param since When its time began, on the monotonic clock. Default: when it first waits. */
  constructor(deadlines: Deadlines, stage: Late, since?: number) {
    this.#deadlines = deadlines
    this.#late = stage
    this.#since = since
  }

  /** The error of the deadline once it has passed. */
  get error(): HooklineError | undefined {
    return this.#error
  }

  /** The signal of a delivery: it aborts when the deadline passes. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#error !== undefined) this.#abort.abort(this.#error)
    }
    return this.#abort.signal
  }

  /** What the deadline ends from now on. */
  set stage(late: Late) {
    this.#late = late
  }

  /** Says what the deadline ends from now on. Throws its error when it has passed: the rest would be in vain. */
  startStage(stage: Late): void {
    if (this.#error !== undefined) throw this.#error
    this.#late = stage
  }

  /**
   * Waits for work, or throws the error of the deadline when that passes first: the work goes on, and nothing waits for it. Work may
   * wait for parts of itself: then the innermost wait ends.
   *
   * @param onLateError Receives what the work throws after the deadline.
   */
  wait<T>(work: T | PromiseLike<T>, onLateError?: (error: unknown) => void): T | Promise<T> {
    if (!isThenable(work)) return work
    this.#startTimer()
    return new Promise((resolve, reject) => {
      const outer = this.#interrupt
      let isInterrupted = false
      this.#interrupt = (error) => {
        isInterrupted = true
        reject(error)
      }
      if (this.#error !== undefined) this.#interrupt(this.#error)
      Promise.resolve(work).then(
        (value) => {
          this.#interrupt = outer
          resolve(value)
        },
        (error) => {
          this.#interrupt = outer
          if (isInterrupted) onLateError?.(error)
          else reject(error)
        },
      )
    })
  }

  /** A function of its own: an error of the deadline keeps the closure that made it alive, and with it all that the closure can reach. */
  #startTimer(): void {
    this.#timer ??= this.#deadlines.set(() => this.pass(), this.#since)
  }

  /** Ends what waits now, with this error or that of the stage. */
  pass(error: HooklineError = this.#late()): void {
    if (this.#isOver) return
    this.#error = error
    this.end()
    this.#abort?.abort(error)
    this.#interrupt?.(error)
  }

  /** Stops the time: nothing ends what waits from now on, also not {@link pass}. */
  end(): void {
    this.#isOver = true
    if (this.#timer !== undefined) this.#deadlines.clear(this.#timer)
    this.#timer = undefined
  }
}

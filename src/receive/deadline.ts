/** The deadline of a request, or of one attempt to handle a message of the inbox. */

import { isThenable } from '../kit/callbacks.ts'
import type { Deadlines, Deadline as Timer } from '../kit/deadlines.ts'
import { HooklineError, type HooklineErrorCode } from '../protocol/error.ts'

/** The code and the text of the error when the deadline passes, for each stage of a request or of an attempt. */
const STAGES = {
  body: ['body_timeout', 'The body did not arrive in time. Send it again.'],
  secret: [
    'secret_unavailable',
    'The secret provider did not respond in time. Make the provider respond or fail sooner.',
  ],
  inbox: ['inbox_unavailable', 'The inbox did not store the message in time. Send the message again.'],
  dedupe: ['dedupe_unavailable', 'The dedupe store did not respond in time. Send the message again.'],
  confirm: ['dedupe_unavailable', 'The dedupe store did not confirm the claim of a message in time. Check the store.'],
  handlers: [
    'handler_timeout',
    'The handlers did not finish in time. Use an `inbox` for slow handlers, or raise its `timeoutMs`.',
  ],
} as const satisfies Readonly<Record<string, readonly [HooklineErrorCode, string]>>

export type Stage = keyof typeof STAGES

export function createLateError(stage: Stage): HooklineError {
  const [code, text] = STAGES[stage]
  return new HooklineError(code, text)
}

export class Deadline {
  #stage: Stage
  #error: HooklineError | undefined
  #abort: AbortController | undefined
  /**
   * Rejects the innermost wait. Waits nest, but never overlap: when the work of the innermost wait settles, this field is
   * set to the function of the wait around it.
   */
  #interrupt: ((error: HooklineError) => void) | undefined
  #timer: Timer | undefined
  #isOver = false
  readonly #deadlines: Deadlines
  readonly #since: number | undefined

  /**
   * @param since The time at which the deadline began to run, on the monotonic clock. Default: the time of the first wait.
   */
  constructor(deadlines: Deadlines, stage: Stage, since?: number) {
    this.#deadlines = deadlines
    this.#stage = stage
    this.#since = since
  }

  /** The error of the deadline; undefined until the deadline passes. */
  get error(): HooklineError | undefined {
    return this.#error
  }

  /** The signal of a delivery, which aborts when the deadline passes. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#error !== undefined) this.#abort.abort(this.#error)
    }
    return this.#abort.signal
  }

  /**
   * Starts a stage, which decides the error if the deadline passes during the stage. Throws the error of the deadline
   * if the deadline has already passed.
   */
  startStage(stage: Stage): void {
    if (this.#error !== undefined) throw this.#error
    this.#stage = stage
  }

  /**
   * Waits for work. Rejects with the error of the deadline if the deadline passes first; the work itself continues. Waits can nest: the
   * deadline ends the innermost wait.
   *
   * @param onLateError Receives the error of work that fails after the deadline.
   */
  wait<T>(work: T | PromiseLike<T>, onLateError?: (error: unknown) => void): T | Promise<T> {
    if (!isThenable(work)) return work
    this.#startTimer()
    return new Promise((resolve, reject) => {
      const outerInterrupt = this.#interrupt
      let isInterrupted = false
      this.#interrupt = (error) => {
        isInterrupted = true
        reject(error)
      }
      if (this.#error !== undefined) this.#interrupt(this.#error)
      Promise.resolve(work).then(
        (value) => {
          this.#interrupt = outerInterrupt
          resolve(value)
        },
        (error) => {
          this.#interrupt = outerInterrupt
          if (isInterrupted) onLateError?.(error)
          else reject(error)
        },
      )
    })
  }

  /**
   * Starts the timer. This is a method of its own, because an error keeps alive the closure in which it was created: here, that closure
   * reaches only this object.
   */
  #startTimer(): void {
    this.#timer ??= this.#deadlines.set(() => this.pass(), this.#since)
  }

  /** Ends the innermost wait with an error, and aborts the signal. Without `error`, the stage decides the error. */
  pass(error: HooklineError = createLateError(this.#stage)): void {
    if (this.#isOver) return
    this.#error = error
    this.stop()
    this.#abort?.abort(error)
    this.#interrupt?.(error)
  }

  /** Stops the timer. After that, {@link pass} has no effect. */
  stop(): void {
    this.#isOver = true
    if (this.#timer !== undefined) this.#deadlines.clear(this.#timer)
    this.#timer = undefined
  }
}

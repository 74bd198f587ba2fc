/** Responds to a captured request as a script says, through the handler that callers pass to undici 8. */

import type { Dispatcher } from 'undici'
import type { Clock } from '../time/clock.ts'
import { createFailure } from './failures.ts'
import type { Answer, Response } from './script.ts'

/** How undici reports a reset: while it reads an answer, by what the answer lacks. */
const RESETS = { headers: 'reset', body: 'reset', answer: 'cut_off', chunk: 'cut_off_chunk' } as const

/** One request, as undici's dispatch controller: the handler is given it with each call. */
export class Controller implements Dispatcher.DispatchController {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #clock: Clock
  #timer: unknown
  #isOver = false
  aborted = false
  paused = false
  reason: Error | null = null
  rawHeaders: string[] = []

  constructor(handler: Dispatcher.DispatchHandler, clock: Clock) {
    this.#handler = handler
    this.#clock = clock
  }

  /** Answers, or fails to. A request that fails before it is sent never starts. */
  respond(step: Response): void {
    if (step.kind !== 'fail') this.#call(() => this.#handler.onRequestStart?.(this, {}))
    switch (step.kind) {
      case 'fail':
        this.fail(step.error())
        break
      case 'answer':
        this.#wait(step.delayMs, () => this.#answer(step.answer, step.dripMs))
        break
      case 'reset':
        if (step.half !== undefined) this.#begin(step.half)
        this.fail(createFailure(RESETS[step.after]))
        break
      case 'close':
      case 'garbage':
        this.fail(createFailure(step.kind))
    }
  }

  /** Ends the request with this error. */
  fail(error: Error): void {
    if (this.#isOver) return
    this.#end()
    this.#handler.onResponseError?.(this, error)
  }

  abort(reason?: Error): void {
    if (this.#isOver) return
    this.aborted = true
    this.reason = reason ?? createFailure('aborted')
    this.fail(this.reason)
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
  }

  #answer(answer: Answer, dripMs: number | undefined): void {
    this.#begin(answer)
    if (dripMs === undefined) this.#finish()
    else this.#drip(dripMs)
  }

  #begin({ status, headers, body }: Answer): void {
    const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
    this.rawHeaders = Object.entries(headers).flat()
    this.#call(() => this.#handler.onResponseStart?.(this, status, Object.fromEntries(named), ''))
    if (body.length > 0) this.#call(() => this.#handler.onResponseData?.(this, body))
  }

  #finish(): void {
    if (this.#isOver) return
    this.#end()
    this.#handler.onResponseEnd?.(this, {})
  }

  #drip(dripMs: number): void {
    this.#wait(dripMs, () => {
      this.#call(() => this.#handler.onResponseData?.(this, Buffer.from('.')))
      this.#drip(dripMs)
    })
  }

  /** A handler that throws ends the request, as in undici. */
  #call(callback: () => void): void {
    if (this.#isOver) return
    try {
      callback()
    } catch (error) {
      this.abort(error as Error)
    }
  }

  #wait(ms: number, callback: () => void): void {
    if (this.#isOver) return
    if (ms === 0) callback()
    else this.#timer = this.#clock.setTimeout(callback, ms)
  }

  #end(): void {
    this.#isOver = true
    this.#clock.clearTimeout(this.#timer)
  }
}

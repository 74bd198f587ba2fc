/** One request and its answer, told to the handler that undici's callers pass (undici 8, `Dispatcher.DispatchHandler`). */

import type { Dispatcher } from 'undici'
import type { Clock } from '../protocol/clock.ts'
import { createFailure } from './failures.ts'
import type { Answer, Move } from './script.ts'

/** What undici makes of a reset: while it reads an answer, it says what the answer lacks. */
const RESETS = { headers: 'reset', body: 'reset', answer: 'cut_off', chunk: 'cut_off_chunk' } as const

/** What a handler gets as its controller. */
export class Exchange implements Dispatcher.DispatchController {
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

  /** Answers, or fails to. What fails before it is sent never starts. */
  play(move: Move): void {
    if (move.kind !== 'fail') this.#tell(() => this.#handler.onRequestStart?.(this, {}))
    switch (move.kind) {
      case 'fail':
        this.fail(move.error())
        break
      case 'answer':
        this.#wait(move.delayMs, () => this.#answer(move.answer, move.dripMs))
        break
      case 'reset':
        if (move.half !== undefined) this.#begin(move.half)
        this.fail(createFailure(RESETS[move.after]))
        break
      case 'close':
      case 'garbage':
        this.fail(createFailure(move.kind))
    }
  }

  /** Ends it with this error. */
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
    this.#tell(() => this.#handler.onResponseStart?.(this, status, Object.fromEntries(named), ''))
    if (body.length > 0) this.#tell(() => this.#handler.onResponseData?.(this, body))
  }

  #finish(): void {
    if (this.#isOver) return
    this.#end()
    this.#handler.onResponseEnd?.(this, {})
  }

  #drip(dripMs: number): void {
    this.#wait(dripMs, () => {
      this.#tell(() => this.#handler.onResponseData?.(this, Buffer.from('.')))
      this.#drip(dripMs)
    })
  }

  /** A handler that throws ends the exchange, as in undici. */
  #tell(call: () => void): void {
    if (this.#isOver) return
    try {
      call()
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

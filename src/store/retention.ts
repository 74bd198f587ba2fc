/** Drops what a queue with a handler has kept for long enough: now, and again and again. */

import { type Clock, unref } from '../kit/clock.ts'
import { dropMatching, type Stored } from './drop.ts'
import type { LogStore } from './queue-store.ts'
import type { HistoryOptions } from './queue-types.ts'

const CLOCK_SET_MS = 60_000
const DROPPED_AT_ONCE = 500
const LETTERS_EVERY_MS = 60 * 60_000
const TRIM_EVERY_MS = 60_000

export class Retention {
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  /** By what drops old ones, the timer that waits. */
  readonly #timers = new Map<() => Promise<unknown>, unknown>()
  #isClosed = false

  constructor(clock: Clock, onError: (error: unknown) => void) {
    this.#clock = clock
    this.#onError = onError
  }

  /** Dead letters stay at most an hour longer, and never longer than twice. */
  keepLetters(stored: Stored, retentionMs: number): void {
    const drop = () => dropMatching(stored, { olderThan: new Date(this.#clock.now() - retentionMs) })
    void this.#repeat(drop, Math.min(retentionMs, LETTERS_EVERY_MS))
  }

  /** Drops some entries at a time, so that the calls of others go between. */
  keepLog(trim: (...which: Parameters<LogStore['trim']>) => Promise<number>, history: HistoryOptions): void {
    const { maxAgeMs, maxBytes = Number.MAX_SAFE_INTEGER } = history
    const dropAll = async (): Promise<void> => {
      const before = new Date(this.#clock.now() - maxAgeMs)
      for (let dropped = DROPPED_AT_ONCE; dropped === DROPPED_AT_ONCE && !this.#isClosed; ) {
        dropped = await trim({ before, maxBytes, limit: DROPPED_AT_ONCE })
      }
    }
    void this.#repeat(dropAll, Math.min(Math.max(maxAgeMs, 1_000), TRIM_EVERY_MS))
  }

  close(): void {
    this.#isClosed = true
    for (const timer of this.#timers.values()) this.#clock.clearTimeout(timer)
  }

  /** Waits once more when the machine's clock was set since the last time: one that is ahead for a while drops nothing. */
  async #repeat(drop: () => Promise<unknown>, everyMs: number, before = this.#wallAhead()): Promise<void> {
    const ahead = this.#wallAhead()
    if (Math.abs(ahead - before) < CLOCK_SET_MS) {
      await drop().catch((error) => !this.#isClosed && this.#onError(error))
    }
    if (this.#isClosed) return
    const again = (): void => void this.#repeat(drop, everyMs, ahead)
    this.#timers.set(drop, unref(this.#clock.setTimeout(again, everyMs)))
  }

  #wallAhead(): number {
    return this.#clock.now() - this.#clock.monotonic()
  }
}

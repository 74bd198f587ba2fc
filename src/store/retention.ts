/** Drops the dead letters and log entries of a queue that are too old: once when its handler starts, and then at intervals. */

import { type Clock, unref } from '../kit/clock.ts'
import { dropMatching, type Stored } from './drop.ts'
import type { LogStore } from './queue-store.ts'
import type { HistoryOptions } from './queue-types.ts'
import { UNLIMITED } from './walk.ts'

const CLOCK_SET_MS = 60_000
const DROPPED_AT_ONCE = 500
const LETTERS_EVERY_MS = 60 * 60_000
const TRIM_EVERY_MS = 60_000

export class Retention {
  readonly #clock: Clock
  readonly #onError: (error: unknown) => void
  /** The timer for the next run of each function that `#repeat` calls, keyed by that function. */
  readonly #timers = new Map<() => Promise<unknown>, unknown>()
  #isClosed = false

  constructor(clock: Clock, onError: (error: unknown) => void) {
    this.#clock = clock
    this.#onError = onError
  }

  /**
   * Drops dead letters that are older than `retentionMs`: at most an hour after they reach this age, and before they reach twice this age.
   */
  keepLetters(stored: Stored, retentionMs: number): void {
    const drop = () => dropMatching(stored, { olderThan: new Date(this.#clock.now() - retentionMs) })
    void this.#repeat(drop, Math.min(retentionMs, LETTERS_EVERY_MS))
  }

  /** Trims the log at intervals, at most 500 entries in each call, so that other calls can run in between. */
  keepLog(trim: (...which: Parameters<LogStore['trim']>) => Promise<number>, history: HistoryOptions): void {
    const { maxAgeMs, maxBytes = UNLIMITED } = history
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

  /**
   * Calls `drop` at each interval, except after an interval in which the machine's clock was set. If the clock was set
   * ahead by mistake, there is time to correct it before anything is dropped.
   */
  async #repeat(drop: () => Promise<unknown>, everyMs: number, aheadBefore = this.#wallAhead()): Promise<void> {
    const ahead = this.#wallAhead()
    if (Math.abs(ahead - aheadBefore) < CLOCK_SET_MS) {
      await drop().catch((error) => !this.#isClosed && this.#onError(error))
    }
    if (this.#isClosed) return
    const again = (): void => void this.#repeat(drop, everyMs, ahead)
    this.#timers.set(drop, unref(this.#clock.setTimeout(again, everyMs)))
  }

  /**
   * Returns how far the machine's clock is ahead of the monotonic clock. The difference changes when the machine's clock is set, and may
   * change while the machine is suspended.
   */
  #wallAhead(): number {
    return this.#clock.now() - this.#clock.monotonic()
  }
}

/** A manual clock: its time stands still until a test moves it. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../kit/clock.ts'

/** A {@link Clock} that a test moves. */
export interface ManualClock extends Clock {
  /** The number of timers that are set. */
  readonly timers: number
  /** When the next timer fires, in milliseconds since the epoch; undefined while none is set. */
  readonly nextTimerAt: number | undefined
  /**
   * Moves the clock forward by `ms` milliseconds. Fires each timer at its time, and lets its effects take place before the next timer
   * fires.
   */
  advance(ms: number): Promise<void>
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/**
 * Creates a clock that stands still until a test moves it.
 *
 * @param start Milliseconds since the epoch. Default: 2026-01-15T09:30:00Z.
 * @example
 * const clock = manualClock()
 * const receiver = createReceiver({ secret, clock })
 * await clock.advance(4500)
 */
export function manualClock(start: number = Date.UTC(2026, 0, 15, 9, 30)): ManualClock {
  return createManualClock(start, runTurns)
}

/**
 * Creates a manual clock. The clock waits for `runEffects` before it moves and after each timer, so that effects take place at the right
 * time.
 */
export function createManualClock(start: number, runEffects: () => Promise<void>): ManualClock {
  let now = start
  const timers: Timer[] = []

  return {
    now: () => now,
    monotonic: () => now - start,
    setTimeout(callback, ms) {
      const timer = { at: now + Math.max(0, ms), callback }
      timers.splice(timers.findLastIndex(({ at }) => at <= timer.at) + 1, 0, timer) // The new timer comes after timers with the same time.
      return timer
    },
    clearTimeout(timer: Timer) {
      const index = timers.indexOf(timer)
      if (index !== -1) timers.splice(index, 1)
    },
    get timers() {
      return timers.length
    },
    get nextTimerAt() {
      return timers[0]?.at
    },
    async advance(ms) {
      const end = now + ms
      await runEffects()
      for (let timer = timers[0]; timer !== undefined && timer.at <= end; timer = timers[0]) {
        timers.shift()
        now = timer.at
        timer.callback()
        await runEffects()
      }
      now = Math.max(now, end) // Another call may have moved the clock further meanwhile.
    },
  }
}

/** Waits for two turns of the event loop: code that yields for one turn continues in the second. */
async function runTurns(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

/** A clock that stands still until a test moves it. */

import type { Clock } from '../protocol/clock.ts'

/** A {@link Clock} that a test moves. */
export interface ManualClock extends Clock {
  /** How many timers are set. */
  readonly timers: number
  /** Goes `ms` milliseconds on, firing each timer at its time and letting what it caused settle before the next. */
  advance(ms: number): Promise<void>
}

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/**
 * Makes a clock that stands still.
 *
 * @param start Milliseconds since the epoch. Default: 2026-01-15T09:30:00Z.
 * @example
 * const clock = manualClock()
 * const receiver = createReceiver({ secret, clock })
 * await clock.advance(4500)
 */
export function manualClock(start: number = Date.UTC(2026, 0, 15, 9, 30)): ManualClock {
  let now = start
  const timers = new Set<Timer>()

  const nextUntil = (end: number): Timer | undefined => {
    let next: Timer | undefined
    for (const timer of timers) {
      if (timer.at <= end && (next === undefined || timer.at < next.at)) next = timer
    }
    return next
  }

  return {
    now: () => now,
    monotonic: () => now - start,
    setTimeout(callback, ms) {
      const timer = { at: now + ms, callback }
      timers.add(timer)
      return timer
    },
    clearTimeout(timer) {
      timers.delete(timer as Timer)
    },
    get timers() {
      return timers.size
    },
    async advance(ms) {
      const end = now + ms
      await settle()
      for (let timer = nextUntil(end); timer !== undefined; timer = nextUntil(end)) {
        timers.delete(timer)
        now = timer.at
        timer.callback()
        await settle()
      }
      now = end
    },
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

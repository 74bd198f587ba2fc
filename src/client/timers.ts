/** Timers that keep the process alive only while somebody waits for what they bring. */

import type { Clock } from '../protocol/clock.ts'

/** A timer that was set. Node's can be told whether the process waits for them; those of another clock need not. */
type Timer = { readonly ref?: () => unknown; readonly unref?: () => unknown }

/** The timers of a client. */
export interface Timers {
  set(callback: () => void, ms: number): Timer
  clear(timer: Timer): void
  /** The process waits, until as many releases as holds. */
  hold(): void
  release(): void
}

/** Makes timers of a clock. */
export function createTimers(clock: Clock): Timers {
  const running = new Set<Timer>()
  let holds = 0

  return {
    set(callback, ms) {
      const timer = clock.setTimeout(() => {
        running.delete(timer)
        callback()
      }, ms) as Timer
      running.add(timer)
      if (holds === 0) timer.unref?.()
      return timer
    },
    clear(timer) {
      running.delete(timer)
      clock.clearTimeout(timer)
    },
    hold() {
      holds++
      for (const timer of running) timer.ref?.()
    },
    release() {
      holds--
      if (holds > 0) return
      for (const timer of running) timer.unref?.()
    },
  }
}

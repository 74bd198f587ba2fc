/** One timer, for the earliest of all that wait. */

import type { Clock } from '../protocol/clock.ts'
import { LONGEST_TIMER_MS } from '../protocol/options.ts'

/** The timer. */
export interface Alarm {
  /** Rings at this time, in milliseconds since the epoch, and not at the one before; undefined: not at all. */
  set(at: number | undefined): void
}

/** Makes an alarm that is not set. One that is set keeps the process alive: a job that waits would be lost with it. */
export function createAlarm(clock: Clock, ring: () => void): Alarm {
  let current: { readonly at: number; readonly timer: unknown } | undefined

  function ringOnce(): void {
    current = undefined
    ring()
  }

  return {
    set(at) {
      if (at === current?.at) return
      if (current !== undefined) clock.clearTimeout(current.timer)
      current = undefined
      if (at === undefined) return
      // A timer waits no longer: this one rings early then, and is set again.
      const delay = Math.max(0, Math.min(at - clock.now(), LONGEST_TIMER_MS))
      current = { at, timer: clock.setTimeout(ringOnce, delay) }
    },
  }
}

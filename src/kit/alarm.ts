/** An alarm is a timer whose time can be changed. */

import { type Clock, MAX_TIMER_MS } from './clock.ts'

/**
 * Creates an alarm, which is not set at first. While it is set, it keeps the process alive, because a waiting job in memory would be lost
 * with the process.
 */
export function createAlarm(clock: Clock, onTime: () => void) {
  let current: { readonly at: number; readonly timer: unknown } | undefined

  function fire(): void {
    current = undefined
    onTime()
  }

  return {
    set(at: number | undefined): void {
      if (at === current?.at) return
      if (current !== undefined) clock.clearTimeout(current.timer)
      current = undefined
      if (at === undefined) return
      // A timer cannot wait longer than MAX_TIMER_MS. For a later time, it fires early, and `onTime` sets the alarm again.
      const delay = Math.max(0, Math.min(at - clock.now(), MAX_TIMER_MS))
      current = { at, timer: clock.setTimeout(fire, delay) }
    },
  }
}

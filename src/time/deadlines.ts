/** Deadlines that are all equally far off: they pass in the order in which they were set, so one timer serves them all. */

import type { Clock } from './clock.ts'

/** What happens when time is up. */
export interface Deadline {
  readonly at: number
  readonly pass: () => void
}

/** The deadlines of everything under way. */
export interface Deadlines {
  set(pass: () => void): Deadline
  clear(deadline: Deadline): void
}

/**
 * Hot path: a timer of its own for each request cost a node:http server about 6 % of its processor time (bench/README.md). The one
 * timer is set for the oldest deadline and is left to fire when that is cleared; it keeps the process alive only while
 * something waits.
 */
export function createDeadlines(ms: number, clock: Clock): Deadlines {
  const waiting = new Set<Deadline>() // In the order of their time.
  let timer: { ref?: () => void; unref?: () => void } | undefined

  function check(): void {
    const now = clock.monotonic()
    for (const deadline of waiting) {
      if (deadline.at > now) {
        timer = clock.setTimeout(check, deadline.at - now) as object
        return
      }
      waiting.delete(deadline)
      deadline.pass()
    }
    timer = undefined
  }

  return {
    set(pass) {
      const deadline = { at: clock.monotonic() + ms, pass }
      waiting.add(deadline)
      if (timer === undefined) timer = clock.setTimeout(check, ms) as object
      else if (waiting.size === 1) timer.ref?.()
      return deadline
    },
    clear(deadline) {
      waiting.delete(deadline)
      if (waiting.size === 0) timer?.unref?.()
    },
  }
}

/** Deadlines that are all equally far off: they pass in the order in which they were set, so one timer serves them all. */

import type { Clock } from '../protocol/clock.ts'

/** What happens when time is up. */
export interface Deadline {
  readonly at: number
  readonly pass: () => void
}

/** The deadlines of everything under way. */
export interface Deadlines {
  /** `now` is when the time began to run. */
  set(now: number, pass: () => void): Deadline
  clear(deadline: Deadline): void
}

/**
 * Hot path: a timer of its own for each request costs a server 3 % of its processor time (bench/README.md). The one
 * timer is set for the oldest deadline and is left to fire when that is cleared; it does not keep the process alive.
 */
export function createDeadlines(ms: number, clock: Clock): Deadlines {
  const waiting = new Set<Deadline>() // In the order of their time.
  let timerFor: number | undefined

  function startTimer({ at }: Deadline): void {
    timerFor = at
    // Never further off than it was set, also when the clock was set back.
    const timer = clock.setTimeout(check, Math.min(at - clock.now(), ms)) as { unref?: () => void }
    timer.unref?.()
  }

  function check(): void {
    // What the timer was for is due, whatever the clock says by now.
    const due = Math.max(clock.now(), timerFor ?? 0)
    timerFor = undefined
    for (const deadline of waiting) {
      if (deadline.at > due) {
        startTimer(deadline)
        break
      }
      waiting.delete(deadline)
      deadline.pass()
    }
  }

  return {
    set(now, pass) {
      const deadline = { at: now + ms, pass }
      waiting.add(deadline)
      if (timerFor === undefined) startTimer(deadline)
      return deadline
    },
    clear(deadline) {
      waiting.delete(deadline)
    },
  }
}

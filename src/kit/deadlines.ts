/** Deadlines that all have the same length: they pass in the order in which they were set, so one timer serves them all. */

import type { Clock } from './clock.ts'
import { isWorkerd } from './workerd.ts'

export interface Deadline {
  readonly at: number
  readonly pass: () => void
  readonly timer?: unknown
}

export interface Deadlines {
  set(pass: () => void, since?: number): Deadline
  clear(deadline: Deadline): void
}

interface Waiting extends Deadline {
  previous?: Waiting | undefined
  next?: Waiting | undefined
}

/**
 * Creates deadlines that pass `ms` after they are set. Hot path: a timer for each request cost a node:http server about 6 % of its
 * processor time (bench/METHOD.md). The one timer is set for the oldest deadline. The timer still fires if that deadline is cleared, but
 * keeps the process alive only while a deadline is set.
 */
export function createDeadlines(ms: number, clock: Clock): Deadlines {
  if (isWorkerd()) return createSeparateDeadlines(ms, clock)
  const ends: Waiting = { at: 0, pass() {} } // Closes the ring: `next` is the deadline that passes first, `previous` the last.
  ends.previous = ends
  ends.next = ends
  let timer: { readonly ref?: () => void; readonly unref?: () => void } | undefined

  function setTimer(leftMs: number): void {
    timer = clock.setTimeout(passDue, leftMs) as object
  }

  /** Passes the deadlines that are due, and sets the timer for the next one. */
  function passDue(): void {
    const now = clock.monotonic()
    for (let { next } = ends; next !== undefined && next !== ends; next = ends.next) {
      if (next.at > now) {
        setTimer(next.at - now)
        return
      }
      remove(next)
      next.pass()
    }
    timer = undefined
  }

  return {
    set(pass, since = clock.monotonic()) {
      const { previous = ends } = ends
      const deadline: Waiting = { at: since + ms, pass, previous, next: ends }
      previous.next = deadline
      ends.previous = deadline
      if (timer === undefined) setTimer(Math.max(0, deadline.at - clock.monotonic()))
      else if (previous === ends) timer.ref?.()
      return deadline
    },
    clear(deadline) {
      remove(deadline)
      if (ends.next === ends) timer?.unref?.()
    },
  }
}

/**
 * Creates deadlines with a timer each, because workerd would end a shared timer with the request that set it. `since` is ignored, because
 * the workerd clock stands still while code runs.
 */
function createSeparateDeadlines(ms: number, clock: Clock): Deadlines {
  return {
    set: (pass) => ({ at: clock.monotonic() + ms, pass, timer: clock.setTimeout(pass, ms) }),
    clear: ({ timer }) => clock.clearTimeout(timer),
  }
}

/**
 * Takes a deadline out of the ring; does nothing for a deadline that is not in it. Clears the links of the deadline: a dead object in the
 * old generation of the garbage collector keeps alive whatever it points to, so one cleared deadline would keep all later ones. A Set has
 * the same problem: each table that it outgrows keeps the next one alive.
 */
function remove(deadline: Waiting): void {
  const { previous, next } = deadline
  if (previous === undefined || next === undefined) return
  previous.next = next
  next.previous = previous
  deadline.previous = undefined
  deadline.next = undefined
}

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
 * Creates deadlines that pass `ms` milliseconds after they are set. They share one timer: a timer for each request cost a node:http server
 * about 6 % of its processor time (bench/METHOD.md). The timer is set for the oldest deadline. It still fires if that deadline is cleared,
 * but keeps the process alive only while a deadline is set.
 */
export function createDeadlines(ms: number, clock: Clock): Deadlines {
  if (isWorkerd()) return createSeparateDeadlines(ms, clock)
  // The deadlines form a ring that `ends` closes: its `next` passes first, and its `previous` passes last.
  const ends: Waiting = { at: 0, pass() {} }
  ends.previous = ends
  ends.next = ends
  let timer: { readonly ref?: () => void; readonly unref?: () => void } | undefined

  function setTimer(leftMs: number): void {
    timer = clock.setTimeout(passDue, leftMs) as object
  }

  /** Calls `pass` of the deadlines that are due, and sets the timer for the next deadline. */
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
 * Creates deadlines that each have their own timer, because workerd would end a shared timer with the request that set
 * it. `set` ignores its argument `since`, because the workerd clock stands still while code runs.
 */
function createSeparateDeadlines(ms: number, clock: Clock): Deadlines {
  return {
    set: (pass) => ({ at: clock.monotonic() + ms, pass, timer: clock.setTimeout(pass, ms) }),
    clear: ({ timer }) => clock.clearTimeout(timer),
  }
}

/**
 * Removes a deadline from the ring; does nothing for a deadline that is not in it. Clears the links of the deadline, so that the garbage
 * collector can free later deadlines: a dead object in its old generation keeps alive whatever it points to. A Set has the same problem:
 * each table that it outgrows keeps the next one alive.
 */
function remove(deadline: Waiting): void {
  const { previous, next } = deadline
  if (previous === undefined || next === undefined) return
  previous.next = next
  next.previous = previous
  deadline.previous = undefined
  deadline.next = undefined
}

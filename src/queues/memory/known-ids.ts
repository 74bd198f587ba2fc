/** The ids that a push skips: those of jobs that wait or are claimed, and of completed ones for the dedupe window. */

import { createFifo } from '../../collections/fifo.ts'
import type { Clock } from '../../time/clock.ts'

/** The ids. */
export interface KnownIds {
  has(id: string): boolean
  /** Of a job that is stored. */
  add(id: string): void
  /** Its job is completed: it is known until the dedupe window is over. */
  complete(id: string): void
  /** Its job is gone. */
  delete(id: string): void
}

/** How long the ids of completed jobs are known, and how many. */
export interface KnownIdsOptions {
  readonly clock: Clock
  readonly dedupeWindowMs: number
  /** The most ids of completed jobs; past that the oldest is forgotten. */
  readonly most: number
}

/** Knows nothing yet. Hot path: one Set for all, so that an id is put in and taken out once in its life. */
export function createKnownIds({ clock, dedupeWindowMs, most }: KnownIdsOptions): KnownIds {
  const ids = new Set<string>()
  const completed = createFifo<string>() // The oldest first.
  const ends = createFifo<number>() // When each of these is forgotten.

  function forgetOldest(): void {
    ids.delete(completed.shift() as string)
    ends.shift()
  }

  return {
    has(id) {
      const now = clock.monotonic()
      while ((ends.peek() ?? Number.POSITIVE_INFINITY) <= now) forgetOldest()
      return ids.has(id)
    },
    add(id) {
      ids.add(id)
    },
    complete(id) {
      if (completed.size === most) forgetOldest()
      completed.push(id)
      ends.push(clock.monotonic() + dedupeWindowMs)
    },
    delete(id) {
      ids.delete(id)
    },
  }
}

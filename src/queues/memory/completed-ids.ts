/** The ids of completed jobs, remembered for the dedupe window. */

import { createFifo } from '../../collections/fifo.ts'
import type { Clock } from '../../time/clock.ts'

/** The ids. */
export interface CompletedIds {
  has(id: string): boolean
  add(id: string): void
}

/** How long, and how many. */
export interface CompletedIdsOptions {
  readonly clock: Clock
  readonly dedupeWindowMs: number
  /** The most ids; past that the oldest is forgotten. */
  readonly most: number
}

/** Remembers nothing yet. */
export function createCompletedIds({ clock, dedupeWindowMs, most }: CompletedIdsOptions): CompletedIds {
  const ids = new Set<string>()
  const oldestFirst = createFifo<{ readonly id: string; readonly until: number }>()

  function forgetOldest(): void {
    ids.delete((oldestFirst.shift() as { readonly id: string }).id)
  }

  return {
    has(id) {
      const now = clock.monotonic()
      while ((oldestFirst.peek()?.until ?? Number.POSITIVE_INFINITY) <= now) forgetOldest()
      return ids.has(id)
    },
    add(id) {
      if (oldestFirst.size === most) forgetOldest()
      ids.add(id)
      oldestFirst.push({ id, until: clock.monotonic() + dedupeWindowMs })
    },
  }
}

/** The ids of jobs that are done, remembered for a while so that pushing one again does nothing. */

import type { Clock } from '../protocol/clock.ts'
import { createFifo } from './fifo.ts'

/** What is remembered. */
export interface KnownIds {
  has(id: string): boolean
  add(id: string): void
}

/** How long, and how many. */
export interface KnownIdsOptions {
  readonly clock: Clock
  /** How long an id is known, in milliseconds. */
  readonly forMs: number
  /** Most of them; past that the oldest is forgotten. */
  readonly most: number
}

interface KnownId {
  readonly id: string
  readonly until: number
}

/** Remembers nothing yet. */
export function createKnownIds({ clock, forMs, most }: KnownIdsOptions): KnownIds {
  const known = new Set<string>()
  const line = createFifo<KnownId>()

  function forgetOldest(): void {
    known.delete((line.shift() as KnownId).id)
  }

  function forgetOver(now: number): void {
    for (let oldest = line.peek(); oldest !== undefined && oldest.until <= now; oldest = line.peek()) forgetOldest()
  }

  return {
    has(id) {
      forgetOver(clock.monotonic())
      return known.has(id)
    },
    add(id) {
      if (line.size === most) forgetOldest()
      known.add(id)
      line.push({ id, until: clock.monotonic() + forMs })
    },
  }
}

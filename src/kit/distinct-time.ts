/** Returns timestamps that never repeat for the same key. */

import type { Clock } from './clock.ts'

/** The latest time of each key, for each clock. The keys of the Map are in the order in which they were last set. */
const clocks = new WeakMap<Clock, Map<string, number>>()

/** Returns the time of the clock, or a later time if the key already has that time. */
export function distinctTime(clock: Clock, key: string): number {
  const latest = clocks.get(clock) ?? new Map<string, number>()
  clocks.set(clock, latest)
  const now = clock.now()
  // Forgets the keys whose time has passed, the oldest first.
  for (const [other, time] of latest) {
    if (time >= now) break
    latest.delete(other)
  }
  const time = Math.max(now, (latest.get(key) ?? 0) + 1)
  latest.delete(key)
  latest.set(key, time)
  return time
}

/** Times that differ: a clock gives no two for one key that are the same. */

import type { Clock } from './clock.ts'

const clocks = new WeakMap<Clock, Map<string, number>>()

export function distinctTime(clock: Clock, key: string): number {
  const latest = clocks.get(clock) ?? new Map<string, number>()
  clocks.set(clock, latest)
  const now = clock.now()
  for (const [other, time] of latest) {
    if (time >= now) break
    latest.delete(other)
  }
  const time = Math.max(now, (latest.get(key) ?? 0) + 1)
  latest.delete(key)
  latest.set(key, time)
  return time
}

/** A queue in memory for tests. */

import { memoryQueue } from '../../src/queues-memory.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'

/** A queue by a clock that stands still, which forgets ids after a day. */
export function testedMemoryQueue(open: (clock: ManualClock) => Queue = (clock) => memoryQueue({ clock })) {
  const clock = manualClock()
  const { now, advance } = clock
  return { queue: open(clock), now, advance, dedupeWindowMs: 24 * 60 * 60_000 }
}

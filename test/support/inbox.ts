/** A receiver with an inbox in memory, on a clock that the test moves. */

import { memoryQueue } from '../../src/queues/memory.ts'
import type { Queue } from '../../src/queues/queue.ts'
import type { InboxOptions } from '../../src/receiver/inbox-options.ts'
import type { ReceiverOptions } from '../../src/receiver/options.ts'
import type { EventSchemas } from '../../src/receiver/schema.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { setUp } from './receive.ts'

// biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
export function setUpInbox<const Events extends EventSchemas = {}>(
  inbox: Partial<InboxOptions> = {},
  options: ReceiverOptions<Events> = {},
  overrides: Partial<Queue> = {},
) {
  const clock = manualClock()
  const memory = memoryQueue({ clock })
  const queue: Queue = { ...memory, ...overrides }
  const set = setUp<Events>({ clock, inbox: { queue, ...inbox }, ...options })
  return { ...set, clock, queue, memory }
}

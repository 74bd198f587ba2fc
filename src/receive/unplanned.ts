/** Counts and reports the track messages whose event has no schema in `events`. */

import { notify } from '../kit/callbacks.ts'
import { createWarning } from '../kit/warning.ts'
import type { ReceivedMessage, TrackMessage } from '../protocol/message.ts'
import type { Delivery } from './delivery.ts'
import type { EventSchemas } from './schema.ts'
import type { Tap } from './tap.ts'

/** Receives a message whose event has no schema in `events`, and the number of messages of that event so far. */
export type OnUnplanned = (message: TrackMessage, unplanned: { readonly count: number }) => unknown

/** The maximum number of events that are counted by name. It is limited, because a sender may use a new name for each message. */
const MAX_EVENTS = 1_000
/** The maximum number of characters in the name of an event that is counted by name. */
const MAX_NAME = 200

export function createUnplanned(events: EventSchemas, onUnplanned: OnUnplanned | undefined, tap: Tap) {
  const planned = new Set(Object.keys(events))
  /** The number of messages of each event. All events that are not counted by name share the key undefined. */
  const counts = new Map<string | undefined, number>()
  const warn = createWarning('onUnplanned', 'HOOKLINE_ON_UNPLANNED')
  let total = 0

  return {
    get total(): number {
      return total
    },
    /** Counts and reports an authentic track message whose event has no schema. */
    count(message: ReceivedMessage, delivery: Delivery): void {
      if (message.type !== 'track' || !delivery.verified || planned.has(message.event)) return
      const { event } = message
      const isNamed = counts.has(event) || (counts.size < MAX_EVENTS && event.length <= MAX_NAME)
      const key = isNamed ? event : undefined
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      total += 1
      tap.publish('unplanned', { message, delivery, count })
      notify(() => onUnplanned?.(message, { count }), warn)
    },
  }
}

/** The messages that a destination does not queue: which, how many, and the diagnostics channel `hookline:skipped`. */

import { channel } from 'node:diagnostics_channel'
import { isMeantFor } from '../message/integrations.ts'
import { INTEGRATION_NAME } from '../message/limits.ts'
import type { Message } from '../message/message.ts'
import type { SkippedEvent, SkipReason } from './observer.ts'
import type { DestinationSettings } from './options.ts'

const skippedChannel = channel('hookline:skipped')

/** Says why a message is not queued; undefined for one that is. */
export function findSkipReason(
  message: Message,
  { enabled, historicalAfterMs }: DestinationSettings,
  now: number,
): SkipReason | undefined {
  if (!enabled) return 'switched_off'
  if (!isMeantFor(INTEGRATION_NAME, message.integrations)) return 'not_selected'
  return isHistorical(message, now, historicalAfterMs) ? 'historical' : undefined
}

/** A deletion is never historical: the request is new, whatever its timestamp. */
function isHistorical({ type, timestamp }: Message, now: number, afterMs: number | undefined): boolean {
  if (afterMs === undefined || type === 'delete') return false
  return now - Date.parse(String(timestamp)) > afterMs
}

export interface SkipCounter {
  readonly counts: Readonly<Record<SkipReason, number>>
  add(message: Message, reason: SkipReason): void
}

export function createSkipCounter(): SkipCounter {
  const counts = { switched_off: 0, not_selected: 0, historical: 0 }
  return {
    counts,
    add(message, reason) {
      counts[reason] += 1
      if (skippedChannel.hasSubscribers) skippedChannel.publish({ message, reason } satisfies SkippedEvent)
    },
  }
}

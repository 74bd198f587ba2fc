/** How a receiver is: what a health check of its process answers. */

import type { Clock } from '../protocol/clock.ts'
import { createPatience } from '../queues/patience.ts'
import type { QueueCounts } from '../queues/queue.ts'

/** How a receiver is. Without an inbox, or where it is not known, the numbers are 0. */
export interface Health {
  /** `closing` once `close` was called; `unavailable` when the inbox does not say within a second how much it holds. */
  readonly status: 'ok' | 'closing' | 'unavailable'
  /** Messages in the inbox that wait to be handled, now or later. */
  readonly waiting: number
  /** Messages that are being handled, by any worker on the inbox. */
  readonly active: number
  /** Messages on the list of the dead. */
  readonly dead: number
  /** How long the message has waited that is due the longest, in milliseconds; 0 when none is due. */
  readonly oldestDueAgeMs: number
}

/** Longest time to wait for the inbox, in milliseconds. */
const PATIENCE_MS = 1_000

/** Asks the inbox. Never rejects. */
export async function checkHealth(
  ask: (() => Promise<QueueCounts>) | undefined,
  isClosing: boolean,
  clock: Clock,
): Promise<Health> {
  const counts = ask === undefined ? NOTHING : await askInTime(ask, clock)
  const status = isClosing ? 'closing' : counts === undefined ? 'unavailable' : 'ok'
  const { waiting, active, dead, oldestDueAt } = counts ?? NOTHING
  const oldestDueAgeMs = oldestDueAt === undefined ? 0 : Math.max(0, clock.now() - oldestDueAt)
  return { status, waiting, active, dead, oldestDueAgeMs }
}

const NOTHING: QueueCounts = { waiting: 0, active: 0, dead: 0, oldestDueAt: undefined }

async function askInTime(ask: () => Promise<QueueCounts>, clock: Clock): Promise<QueueCounts | undefined> {
  let counts: QueueCounts | undefined
  const answer = async (): Promise<void> => {
    try {
      counts = await ask()
    } catch {
      // Unknown, then.
    }
  }
  await createPatience(clock, new AbortController().signal).waitFor(answer(), PATIENCE_MS)
  return counts
}

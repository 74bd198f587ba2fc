/** Deletes users: submits one notification for each affected source, each with a time of its own. */

import { compose } from '../message/compose.ts'
import { requireText } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'
import type { QueuedDeletion } from './api.ts'
import type { ReadySource } from './sources.ts'
import { submitToAll } from './submit.ts'

/** Submits the notifications of one deletion. */
type Deletion = (userId: string, sources: readonly ReadySource[]) => Promise<readonly QueuedDeletion[]>

/** Creates the function that deletes users. */
export function createDeletion(clock: Clock): Deletion {
  const nextTime = createTimes(clock)

  async function notify(userId: string, { name, destinations }: ReadySource): Promise<QueuedDeletion> {
    const message = compose('delete', { userId }, nextTime(userId))
    const answers = await submitToAll(destinations, [{ message }])
    return { source: name, queued: answers.flat().filter(({ queued }) => queued).length }
  }

  return async (userId, sources) => {
    requireText('userId', userId, 'user-1')
    const notifications = sources.map((source) => notify(userId, source))
    await Promise.allSettled(notifications) // Wait for all of them before the first failure is thrown.
    return Promise.all(notifications)
  }
}

/**
 * Times that differ for each notification of a user. A `delete` carries its type, the user and the time ("Outbound event
 * delivery", Delivered message fields): two with the same time are the same bytes, which a receiver takes for one delivery.
 */
function createTimes(clock: Clock): (userId: string) => number {
  const latest = new Map<string, number>() // By user, about the oldest first.

  return (userId) => {
    const now = clock.now()
    for (const [user, time] of latest) {
      if (time >= now) break
      latest.delete(user)
    }
    const time = Math.max(now, (latest.get(userId) ?? 0) + 1)
    latest.delete(userId)
    latest.set(userId, time)
    return time
  }
}

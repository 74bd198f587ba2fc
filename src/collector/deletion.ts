/** Deletes users: submits one notification for each affected source, each with a time of its own. */

import { compose } from '../message/compose.ts'
import { requireText } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'
import { distinctTime } from '../time/distinct.ts'
import type { QueuedDeletion } from './api.ts'
import type { ReadySource } from './sources.ts'
import { submitToAll } from './submit.ts'

type Deletion = (userId: string, sources: readonly ReadySource[]) => Promise<readonly QueuedDeletion[]>

export function createDeletion(clock: Clock): Deletion {
  async function notify(userId: string, { name, destinations }: ReadySource): Promise<QueuedDeletion> {
    const message = compose('delete', { userId }, distinctTime(clock, userId))
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

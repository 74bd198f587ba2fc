/** Submits messages to several destinations: the messages of collected calls, and the notifications that request the deletion of a user. */

import { requireText } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { distinctTime } from '../kit/distinct-time.ts'
import { compose } from '../protocol/compose.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Queued, Submission } from '../send/destination-types.ts'
import { shareSubmissions } from '../send/shared-submit.ts'
import type { QueuedDeletion } from './collector-types.ts'
import type { ReadySource } from './sources.ts'

/** Submits the same messages to every destination at once, and waits for all of them. */
export async function submitToAll(
  { destinations }: ReadySource,
  submissions: readonly Submission[],
  clock: Clock,
): Promise<readonly (readonly Queued[])[]> {
  if (submissions.length === 0) return []
  const settled = await Promise.allSettled(destinations.map(shareSubmissions(submissions, clock)))
  const failures: unknown[] = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  if (failures.length > 0) throw joinFailures(failures)
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}

function joinFailures(failures: readonly unknown[]): HooklineError {
  const [first] = failures
  if (first instanceof HooklineError && failures.every(isTemporary)) return first
  const cause = new AggregateError(failures, 'destinations failed')
  const failed = failures.length === 1 ? 'A destination' : `${failures.length} destinations`
  return new HooklineError('internal', `${failed} did not queue all messages. See the \`cause\` of this error.`, {
    cause,
  })
}

/** Returns whether a failure is temporary, so that the client should send the request again. */
function isTemporary(failure: unknown): boolean {
  return failure instanceof HooklineError && failure.status === 503
}

/** Submits a `delete` notification for each source. The timestamps of all notifications differ. */
export async function requestDeletion(
  clock: Clock,
  userId: string,
  sources: readonly ReadySource[],
): Promise<readonly QueuedDeletion[]> {
  requireText('userId', userId, 'user-1')
  const notifications = sources.map(async (source): Promise<QueuedDeletion> => {
    const message = compose('delete', { userId }, distinctTime(clock, userId))
    const answers = await submitToAll(source, [{ message, source: source.name }], clock)
    return { source: source.name, queued: answers.flat().filter(({ queued }) => queued).length }
  })
  await Promise.allSettled(notifications) // Every notification is submitted before the first failure is thrown.
  return Promise.all(notifications)
}

/** Puts messages into the queues of several destinations. */

import { HooklineError } from '../protocol/error.ts'
import type { Queued, Submission } from '../sender/api.ts'
import type { CollectorDestination } from './api.ts'

/**
 * Submits the same messages to every destination, to all at once, and waits for all of them.
 *
 * @returns What each destination said, in their order.
 * @throws HooklineError (as a rejection) the 503 of a destination that has no room or is closed; `internal` when one
 *   failed in another way: its cause is an AggregateError.
 */
export async function submitToAll(
  destinations: readonly CollectorDestination[],
  submissions: readonly Submission[],
): Promise<readonly (readonly Queued[])[]> {
  if (submissions.length === 0) return []
  const settled = await Promise.allSettled(destinations.map(async (destination) => destination.submit(submissions)))
  const failures: unknown[] = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  if (failures.length > 0) throw summarise(failures)
  return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
}

function summarise(failures: readonly unknown[]): HooklineError {
  const [first] = failures
  if (first instanceof HooklineError && failures.every(isPassing)) return first
  const cause = new AggregateError(failures, 'destinations failed')
  return new HooklineError('internal', `${failures.length} of the destinations failed.`, { cause })
}

/** Whether it will pass: the client is told to come back. */
function isPassing(failure: unknown): boolean {
  return failure instanceof HooklineError && failure.status === 503
}

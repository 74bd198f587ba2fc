/** Submits the same messages to several destinations, which share the composed messages. */

import type { Clock } from '../kit/clock.ts'
import { type Composed, composeSubmission } from './compose-call.ts'
import type { Destination, Queued, Submission } from './destination-types.ts'

/**
 * Maps the `submit` of each destination to the function that queues composed messages for it. A destination whose `submit` was wrapped or
 * replaced is not found.
 */
export const pushes: WeakMap<Destination['submit'], (composed: readonly Composed[]) => Promise<readonly Queued[]>> =
  new WeakMap()

/**
 * Returns a function that submits the messages to a destination. All destinations of this library share the composed messages. Any other
 * object gets the submissions unchanged.
 */
export function shareSubmissions(submissions: readonly Submission[], clock: Clock) {
  let composed: readonly Composed[] | undefined
  return async (destination: Pick<Destination, 'submit'>): Promise<readonly Queued[]> => {
    const push = pushes.get(destination.submit)
    if (push === undefined) return destination.submit(submissions)
    composed ??= submissions.map((submission) => composeSubmission(submission, clock))
    return push(composed)
  }
}

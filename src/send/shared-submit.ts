/** Submits the same messages to several destinations, which share the composed messages. */

import type { Clock } from '../kit/clock.ts'
import { type Composed, composeSubmission } from './compose-call.ts'
import type { Destination, Queued, Submission } from './destination-types.ts'

/**
 * For each destination, the function that queues composed messages, keyed by the destination's `submit`. A destination whose `submit` was
 * wrapped or replaced is not found.
 */
export const pushes: WeakMap<Destination['submit'], (composed: readonly Composed[]) => Promise<readonly Queued[]>> =
  new WeakMap()

/**
 * Returns a function that submits to a destination. It composes the messages only once for all destinations of this library. Any other
 * object gets the submissions as they are.
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

/** Whose fault an error is. */

import { HooklineError } from '../protocol/error.ts'

/** Whether a message is at fault that will not be better the next time it is sent. */
export function isUnusable(error: unknown): error is HooklineError {
  return error instanceof HooklineError && error.status < 500
}

/** What was thrown, as one of ours. */
export function toError(thrown: unknown): HooklineError {
  if (thrown instanceof HooklineError) return thrown
  return new HooklineError('internal', 'Something failed inside the endpoint.', { cause: thrown })
}

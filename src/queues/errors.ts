/** The errors of a queue's calls. */

import { describeError, HooklineError } from '../message/error.ts'

/** Of a call after the queue was closed. */
export function shuttingDown(name: string): HooklineError {
  return new HooklineError('shutting_down', `Queue ${name} is closed. Got a call after close(). Create a new queue.`)
}

/** What the store threw, as one of ours. */
export function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const message = `Queue ${name}: the engine failed. Got ${describeError(error).replace(/\.$/, '')}. Check that it runs and can be reached.`
  return new HooklineError('queue_unavailable', message, { cause: error })
}

/** Of a second handler. */
export function hasAnotherHandler(name: string): TypeError {
  return new TypeError(
    `Queue ${name} can have one handler. Got a second handler. Create a queue for each destination and each inbox.`,
  )
}

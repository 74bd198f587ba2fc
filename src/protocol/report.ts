/** Tells the developer's callbacks what happened. Whatever they do changes nothing: when one fails, the process is warned. */

import type { HooklineError } from './error.ts'
import { isThenable } from './thenable.ts'

/** Gives an error to `onError`. */
export function report<Request>(
  onError: (error: HooklineError, request: Request) => unknown,
  error: HooklineError,
  request: Request,
): void {
  tell(() => onError(error, request), 'onError', 'HOOKLINE_ON_ERROR')
}

/**
 * Calls a callback, and does not wait for it.
 *
 * @param name Of the option, for the warning; `code` of the warning likewise.
 */
export function tell(callback: () => unknown, name: string, code: string): void {
  const warn = (failure: unknown): void => {
    const detail = failure instanceof Error ? failure.message : 'It threw what is no Error.'
    process.emitWarning(`${name} failed`, { code, detail })
  }
  try {
    const told = callback()
    if (isThenable(told)) told.then(undefined, warn)
  } catch (failure) {
    warn(failure)
  }
}

/** What `onError` is by default: prints the 5xx errors but `shutting_down`. */
export function printOurFaults(error: HooklineError): void {
  if (error.status >= 500 && error.code !== 'shutting_down') console.error(error)
}

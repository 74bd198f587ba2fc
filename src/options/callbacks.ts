/** Calls the callbacks that a developer gave as options. Whatever they do changes nothing: one that fails is a warning. */

import type { HooklineError } from '../message/error.ts'
import type { Clock } from '../time/clock.ts'

/** Gives an error to `onError`. */
export function report<Request>(
  onError: (error: HooklineError, request: Request) => unknown,
  error: HooklineError,
  request: Request,
): void {
  notify(() => onError(error, request), 'onError', 'HOOKLINE_ON_ERROR')
}

/**
 * Calls a callback and does not wait for it.
 *
 * @param name Of the option, for the warning; `code` of the warning likewise.
 */
export function notify(callback: () => unknown, name: string, code: string): void {
  const warn = (failure: unknown): void => {
    const detail = failure instanceof Error ? failure.message : `It threw a ${typeof failure}.`
    process.emitWarning(`${name} failed`, { code, detail })
  }
  try {
    const result = callback()
    if (isThenable(result)) result.then(undefined, warn)
  } catch (failure) {
    warn(failure)
  }
}

/** The default of `onError`: prints the 5xx errors but `shutting_down`. */
export function printServerErrors(error: HooklineError): void {
  if (error.status >= 500 && error.code !== 'shutting_down') console.error(error)
}

/** Prints an error once, and the same one again after a minute. The default of `onError`. */
export function printOnceAMinute(clock: Clock): (error: HooklineError) => void {
  const printedAt = new Map<string, number>()
  return (error) => {
    const now = clock.monotonic()
    for (const [message, at] of printedAt) if (now - at >= 60_000) printedAt.delete(message)
    if (printedAt.has(error.message)) return
    printedAt.set(error.message, now)
    printServerErrors(error)
  }
}

/** Whether a value has to be awaited: a promise of any make. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
}

/** Calls the callbacks that a developer passed as options. A callback that fails causes a warning and has no other effect. */

import type { WarnOfFailure } from './warning.ts'

/** Calls a callback, and warns if it throws or rejects. Returns the promise of an async callback, which never rejects. */
export function notify(callback: () => unknown, warn: WarnOfFailure): PromiseLike<unknown> | undefined {
  try {
    const result = callback()
    if (isThenable(result)) return result.then(undefined, warn)
  } catch (failure) {
    warn(failure)
  }
  return undefined
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
}

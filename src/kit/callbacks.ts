/** Calls the callbacks that a developer gave as options. Whatever they do changes nothing: one that fails is a warning. */

import type { WarnOfFailure } from './warning.ts'

/** Calls a callback and does not wait for it. */
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

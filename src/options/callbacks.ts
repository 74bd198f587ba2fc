/** Calls the callbacks that a developer gave as options. Whatever they do changes nothing: one that fails is a warning. */

/**
 * Calls a callback and does not wait for it.
 *
 * @param name Of the option, for the warning; `code` of the warning likewise.
 * @returns The promise that the callback returned, if it did. Never rejects.
 */
export function notify(callback: () => unknown, name: string, code: string): PromiseLike<unknown> | undefined {
  const warn = (failure: unknown): void => {
    const detail = failure instanceof Error ? failure.message : `It threw a ${typeof failure}.`
    process.emitWarning(`${name} failed`, { code, detail })
  }
  try {
    const result = callback()
    if (isThenable(result)) return result.then(undefined, warn)
  } catch (failure) {
    warn(failure)
  }
  return undefined
}

/** Whether a value has to be awaited: a promise of any make. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function'
}

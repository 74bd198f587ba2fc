/** Emits process warnings when a function of the developer fails. The warnings are limited in number and escaped, like log lines. */

import { describeError } from '../protocol/error.ts'
import { escaped } from '../protocol/show-text.ts'

export { escaped }

/** Warns that a function failed. Gets the value that the function threw, and never throws itself. */
export type WarnOfFailure = (failure: unknown) => void

/** The maximum number of warnings per minute. Without a limit, strangers whose requests make the function fail could fill the disk. */
const MAX_WARNINGS = 5
const PERIOD_MS = 60_000
const MAX_DETAIL = 500

/** Creates a function that emits a warning about a failure of the function `name`. */
export function createWarning(name: string, code: string): WarnOfFailure {
  let since = Number.NEGATIVE_INFINITY
  let count = 0

  return (failure) => {
    const now = performance.now()
    if (now - since >= PERIOD_MS) [since, count] = [now, 0]
    count += 1
    if (count > MAX_WARNINGS) return
    process.emitWarning(`${name} failed`, { code, detail: escaped(describeError(failure).slice(0, MAX_DETAIL)) })
  }
}

/** Process warnings about functions of the developer that failed: limited in number and escaped, like the lines of the log. */

import { describeError } from '../protocol/error.ts'
import { escaped } from '../protocol/show-text.ts'

export { escaped }

/** Warns that the function failed. Gets the value that the function threw, and never throws itself. */
export type WarnOfFailure = (failure: unknown) => void

/** The maximum number of warnings per minute. Without a limit, strangers whose requests make the function fail could fill the disk. */
const MAX_WARNINGS = 5
const PERIOD_MS = 60_000
const MAX_DETAIL = 500

/** Creates the function that warns about one function, by its name and with a code. */
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

/** Warnings of the process about a function of the developer that failed: limited and escaped, like the lines of the log. */

import { describeError } from '../protocol/error.ts'
import { escaped } from '../protocol/show-text.ts'

export { escaped }

/** Warns that the function failed, with the value that it threw. Never throws. */
export type WarnOfFailure = (failure: unknown) => void

/** The maximum number of warnings in a minute, because requests from strangers could make the function fail and fill the disk. */
const MAX_WARNINGS = 5
const PERIOD_MS = 60_000
const MAX_DETAIL = 500

/** Creates the warning of one function, under its name and a code. */
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

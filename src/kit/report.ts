/** Reports errors: to the `onError` that a developer passed, and as lines of the log. */

import type { HooklineError } from '../protocol/error.ts'
import { notify } from './callbacks.ts'
import { requireFunction } from './checks.ts'
import type { Clock } from './clock.ts'
import { createLog, type Line, type Log, type Logger } from './log.ts'
import { createWarning } from './warning.ts'

export interface ReportOptions<Request> {
  readonly onError?: ((error: HooklineError, request: Request) => unknown) | undefined
  readonly logger?: Logger | undefined
}

/**
 * Reports an error. The fields of `line` replace those of the log line; null means that no line is written. Never throws, and waits for
 * nothing.
 */
export type Report<Request> = (error: HooklineError, request: Request, line?: Partial<Line> | null) => void

/**
 * Checks `onError` and `logger`, and creates the function that reports to both. With `onError` and no `logger`, no lines are written. No
 * line is ever written for `shutting_down`, because the sender will retry.
 */
export function createReport<Request>(
  { onError, logger }: ReportOptions<Request>,
  clock: Clock,
): { readonly report: Report<Request>; readonly log: Log } {
  if (onError !== undefined) requireFunction('onError', onError)
  const log = createLog(logger, onError, clock)
  const warn = createWarning('onError', 'HOOKLINE_ON_ERROR')
  return {
    log,
    report(error, request, line) {
      if (onError !== undefined) notify(() => onError(error, request), warn)
      const { code, status, message, cause: thrown } = error
      const level = status < 500 ? 'warn' : 'error'
      if (code !== 'shutting_down' && line !== null)
        log.write({ level, code, text: `${code}: ${message}`, thrown, ...line })
    },
  }
}

/** Returns a function that reports an error to the `onError` and the `logger` of a queue. */
export function readOnError(options: ReportOptions<undefined>, clock: Clock): (error: HooklineError) => void {
  const { report } = createReport(options, clock)
  return (error) => report(error, undefined)
}

/**
 * Writes log lines to a logger or the console, one for each problem. Lines are limited in number, escaped, and contain no content of
 * messages.
 */

import { HooklineError } from '../protocol/error.ts'
import { notify } from './callbacks.ts'
import { requireMethods } from './checks.ts'
import { type Clock, unref } from './clock.ts'
import { createWarning, escaped } from './warning.ts'

/** Receives the lines that Hookline logs. Pass pino, or any object with the same methods. */
export interface Logger {
  error(fields: object, text: string): unknown
  warn(fields: object, text: string): unknown
  info(fields: object, text: string): unknown
}

export interface Line {
  readonly level: 'error' | 'warn'
  readonly code: string
  readonly text: string
  readonly fields?: object
  readonly thrown?: unknown
  readonly count?: number
}

/** Writes lines. Never throws. */
export interface Log {
  /** Whether lines are discarded because a callback receives the errors instead. */
  readonly isSilent: boolean
  write(line: Line): void
  /** Writes how many lines have been left out so far. The log does the same one minute after the first line of a code. */
  flush(): void
}

/** The maximum number of different lines per minute for each code. One more line gives the number of lines that were left out. */
const MAX_LINES = 5
const PERIOD_MS = 60_000
const MAX_TEXT = 1_000
const MAX_STACK = 4_000
const MAX_ERRORS = 10

interface Period {
  readonly level: Line['level']
  readonly texts: Set<string>
  leftOut: number
}

/** Creates the log. Without a logger, the lines go to the console, unless a callback receives the errors. */
export function createLog(logger: Logger | undefined, callback: unknown, clock: Clock): Log {
  if (logger !== undefined) requireMethods('logger', logger, ['error', 'warn', 'info'])
  const target = logger ?? (callback === undefined ? console : undefined)
  const periods = new Map<string, Period>()
  const warn = createWarning('logger', 'HOOKLINE_LOGGER')

  function print({ level, code, text, fields, thrown }: Line): void {
    const line = escaped(text.slice(0, MAX_TEXT).trimEnd())
    const stack = stackOf(thrown).slice(0, MAX_STACK).split('\n').map(escaped).join('\n')
    const write = (): unknown =>
      target === console
        ? console[level](`hookline: ${line}${stack && `\n${stack}`.replaceAll('\n', '\n    ')}`)
        : target?.[level]({ code, ...fields, ...(stack && { stack }) }, line)
    notify(write, warn)
  }

  function printLeftOut(code: string, period: Period): void {
    const { level, leftOut: more } = period
    period.leftOut = 0
    if (more > 0) print({ level, code, text: `${more} more ${code} lines in the last minute.`, fields: { more } })
  }

  function startPeriod(code: string, level: Line['level']): Period {
    const period = { level, texts: new Set<string>(), leftOut: 0 }
    const endPeriod = (): void => {
      periods.delete(code)
      printLeftOut(code, period)
    }
    unref(clock.setTimeout(endPeriod, PERIOD_MS))
    periods.set(code, period)
    return period
  }

  return {
    isSilent: target === undefined,
    write(line) {
      if (target === undefined) return
      const { code, level, text, count = 1 } = line
      const period = periods.get(code) ?? startPeriod(code, level)
      if (period.texts.size === MAX_LINES || period.texts.has(text)) {
        period.leftOut += count
      } else {
        period.texts.add(text)
        print(line)
      }
    },
    flush: () => periods.forEach((period, code) => void printLeftOut(code, period)),
  }
}

/** Returns the stacks of a thrown value, of its errors and of its causes, at most three deep. */
function stackOf(thrown: unknown, depth = 0): string {
  if (thrown === undefined || depth > 3) return ''
  try {
    if (thrown instanceof AggregateError) {
      const stacks = thrown.errors.slice(0, MAX_ERRORS).map((each) => stackOf(each, depth + 1))
      return stacks.filter((stack) => stack !== '').join('\n')
    }
    const { stack = thrown, cause } = Object(thrown)
    return `${thrown instanceof HooklineError ? thrown.message : stack}\n${stackOf(cause, depth + 1)}`.trim()
  } catch {
    return 'A value that cannot be shown was thrown.'
  }
}

/** What is told of a PostgreSQL that says no or is away: never rows, bodies or passwords, which its own errors may hold. */

import { HooklineError } from '../protocol/error.ts'

/** A fault of PostgreSQL, of the way there or of pg-boss, as it may be logged. */
export function unavailable(name: string, error: unknown): HooklineError {
  const cause = redact(error)
  return new HooklineError('queue_unavailable', `The queue ${name} cannot use its PostgreSQL: ${cause.message}`, {
    cause,
  })
}

/** Whether the data are at fault in what {@link unavailable} made, so that it is no use to send them again with others. */
export function isFaultOfData(error: unknown): boolean {
  const { code } = (error as HooklineError).cause as { readonly code?: unknown }
  return isOfData(code)
}

function isOfData(code: unknown): boolean {
  return typeof code === 'string' && OF_DATA.test(code)
}

/** SQLSTATE: data exceptions, constraints, limits. Messages of the first quote data. */
const OF_DATA = /^(?:22|23|54)/

function redact(error: unknown): Error {
  const { code, message } = plainest(error)
  const text = isOfData(code) ? `SQLSTATE ${code}` : message
  return Object.assign(new Error(text), code === undefined ? {} : { code })
}

/** Several addresses that all refuse come as one error without a message. */
function plainest(error: unknown): { readonly code: unknown; readonly message: string } {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return { code: undefined, message: 'It threw what is no Error.' }
  const { message, code } = first as Error & { readonly code?: unknown }
  return { code, message }
}

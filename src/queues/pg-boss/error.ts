/** Errors reported for PostgreSQL. They never contain rows, message bodies or passwords, which its own errors may hold. */

import { describeError, HooklineError } from '../../message/error.ts'

/** What PostgreSQL, pg-boss or the connection threw, as it may be logged. */
export function unavailable(name: string, error: unknown): HooklineError {
  if (error instanceof HooklineError) return error
  const cause = redact(error)
  const refused = Object.hasOwn(REFUSED, cause.message) ? REFUSED[cause.message] : undefined
  if (refused !== undefined) {
    const [what, got, advice] = refused
    return new HooklineError('queue_unavailable', `Queue ${name} cannot use PostgreSQL: ${what}. Got ${got}. ${advice}`)
  }
  const found = cause.message.replace(/\.$/, '')
  const message = `Queue ${name}: PostgreSQL failed. Got ${found}. Check that it runs, can be reached and accepts the user.`
  return new HooklineError('queue_unavailable', message, { cause })
}

/** By what pg-boss says to an observer, which creates and migrates nothing. */
const REFUSED: Readonly<Record<string, readonly [what: string, found: string, advice: string]>> = {
  'pg-boss is not installed': [
    'the schema has no queues',
    'no tables of pg-boss',
    'Check the schema, or start what pushes to the queue first.',
  ],
  'pg-boss database requires migrations': [
    'its tables are of another version of pg-boss',
    'a version that the pg-boss here does not know',
    'Install the pg-boss of the workers.',
  ],
}

/** Whether the data caused what {@link unavailable} created, so that other data may be accepted. */
export function isFaultOfData(error: unknown): boolean {
  return isOfData(((error as HooklineError).cause as { readonly code?: unknown } | undefined)?.code)
}

function isOfData(code: unknown): boolean {
  return typeof code === 'string' && OF_DATA.test(code)
}

/** SQLSTATE: data exceptions, constraints, limits. Messages of the first quote data. */
const OF_DATA = /^(?:22|23|54)/

function redact(error: unknown): Error {
  // Several addresses that all refuse come as one error without a message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (!(first instanceof Error)) return new Error(describeError(first))
  const { code, message } = first as Error & { readonly code?: unknown }
  const text = isOfData(code) ? `SQLSTATE ${code}` : message
  return Object.assign(new Error(text), code === undefined ? {} : { code })
}

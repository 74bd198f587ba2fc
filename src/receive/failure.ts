/** Explains the errors that end the handling of a message, to the owner of the endpoint and to the sender. */

import { describeError, HooklineError } from '../protocol/error.ts'
import { locateIssues } from './schema-issues.ts'

/**
 * Explains an error to the owner of the endpoint: describes the value that the first failed handler threw, or says
 * where a value does not match its schema. The sender gets only the message of the error. Never throws, whatever value
 * it gets.
 */
export function explainError(thrown: unknown): string {
  if (!(thrown instanceof HooklineError)) return describeError(thrown)
  const { code, message, cause, issues } = thrown
  if (issues !== undefined && issues.length > 0) return `${message} Location: ${locateIssues(issues)}.`
  if (code !== 'handler_failed' || !(cause instanceof AggregateError)) return message
  const [first, ...others] = cause.errors
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`
  return `${nameOf(first)}: ${describeError(first)}`.slice(0, MAX_LENGTH) + more
}

const MAX_LENGTH = 500

function nameOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.name) : typeof thrown
  } catch {
    return 'Error'
  }
}

/** Returns whether the message itself is at fault, so that sending it again would not help. */
export function isUnusable(error: unknown): error is HooklineError {
  return error instanceof HooklineError && error.status < 500
}

export function toError(thrown: unknown): HooklineError {
  if (thrown instanceof HooklineError) return thrown
  const message = 'The endpoint could not handle the request. See `cause` of this error in `onError`.'
  return new HooklineError('internal', message, { cause: thrown })
}

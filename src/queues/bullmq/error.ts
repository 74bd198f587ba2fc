/** Errors reported for Redis. They never contain commands, which hold passwords and bodies. */

import { HooklineError } from '../../message/error.ts'

/** What Redis, BullMQ or the connection threw, as it may be logged. `undefined`: nothing within the time. */
export function unavailable(name: string, timeoutMs: number, error: unknown): HooklineError {
  // Its message quotes the data, so it is no cause.
  if (error instanceof SyntaxError) return refused(name, 'a job is unreadable', 'data that is not JSON', UNREADABLE)
  const found = codeOf(error) ?? 'no answer'
  if (isReply(error)) return refused(name, 'Redis refused a command', found, REFUSED, error)
  return refused(name, `Redis did not respond within ${timeoutMs} ms`, found, UNREACHABLE, error)
}

/** A `queue_unavailable` in its three parts. */
export function refused(name: string, what: string, found: string, advice: string, cause?: unknown): HooklineError {
  const message = `Queue ${name}: ${what}. Got ${found}. ${advice}`
  return new HooklineError('queue_unavailable', message, cause === undefined ? {} : { cause: withoutCommand(cause) })
}

const UNREACHABLE = 'Check that `connection` points to a running server, for example redis://localhost:6379.'
const REFUSED = "Check the password of `connection`, the user's rights, and the server's memory and role."
const UNREADABLE = "Repair or remove the job with BullMQ's tools."

/** Whether BullMQ refused because the job is not where it was. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && error.code < 0
}

/** Whether Redis answered, with an error. */
export function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/** The reply of Redis begins with a code; the rest of it may quote the command. */
function codeOf(error: unknown): string | undefined {
  if (isReply(error)) return /^[A-Z]+/.exec((error as Error).message)?.[0] ?? 'an error'
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** The error without the command that failed: it holds passwords and bodies. */
function withoutCommand(error: unknown): unknown {
  if (!(error instanceof Error) || !('command' in error)) return error
  const { name, message, stack = '' } = error
  return Object.assign(new Error(message), { name, stack })
}

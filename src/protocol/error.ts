/** The error class for requests that are refused or fail. Its errors have a stable code, a status, and a message that is safe to show. */

import { isPromise, isUint8Array } from 'node:util/types'
import { type HooklineErrorCode, STATUS } from './error-codes.ts'

export type { HooklineErrorCode }

/** A fault that a schema found. `message` and `path` may quote the received message, because the keys of a record are data, too. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** Details of a {@link HooklineError}. */
export interface HooklineErrorOptions {
  /** The field of the message that is at fault, as a dotted path: `properties`. */
  readonly path?: string
  /** The issues that a schema found. */
  readonly issues?: readonly SchemaIssue[]
  /** The value that a handler, a provider or a callback of yours threw. It never comes from bytes that came over the wire. */
  readonly cause?: unknown
}

/**
 * The error of a request that was refused or failed. Its message is safe to log and to send: it never contains a secret
 * or a digest. The only part of a body that it may contain is the beginning of a wrong `type`, escaped.
 *
 * A mistake in the developer's own call (an option, an argument) is a `TypeError` instead.
 */
export class HooklineError extends Error {
  override readonly name = 'HooklineError'
  /** Names what went wrong. */
  readonly code: HooklineErrorCode
  /** The HTTP status of the answer to the sender. */
  readonly status: number
  /** The field at fault, as a dotted path; undefined when no single field is at fault. */
  readonly path: string | undefined
  /**
   * The issues that your schema found, for `schema_mismatch`; undefined for other codes. They may quote the message, so they are neither
   * sent in the answer nor enumerable: code that prints or serialises the error leaves them out.
   */
  declare readonly issues: readonly SchemaIssue[] | undefined

  constructor(code: HooklineErrorCode, message: string, options: HooklineErrorOptions = {}) {
    super(message, options) // Error reads only `cause` from the options.
    this.code = code
    this.status = STATUS[code]
    this.path = options.path
    if (options.issues !== undefined) Object.defineProperty(this, 'issues', { value: options.issues })
  }
}

/**
 * Creates the error for a field of a message: what the field must be, what was found, and what to do.
 *
 * @param found The kind of the value. It is never the value itself, which came over the wire; the only exception is a wrong `type`.
 * @param advice What to pass. Follows the word "Pass" in the error.
 */
export function invalidField(
  code: HooklineErrorCode,
  path: string,
  rule: string,
  found: string,
  advice: string,
): HooklineError {
  return new HooklineError(code, `\`${path}\` ${rule}. Got ${found}. Pass ${advice}.`, { path })
}

/** Names the kind of a value without showing its contents. */
export function kindOf(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  if (value === '') return 'an empty string'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (isUint8Array(value)) return 'bytes'
  if (isPromise(value)) return 'a promise'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Describes briefly what was thrown: gives the message of an error, or the kind of any other value. Never throws. */
export function describeError(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : `a thrown ${kindOf(thrown).replace(/^an? /, '')}`
  } catch {
    return 'a value that cannot be shown'
  }
}

export function requireBytes(value: unknown, name: string): Uint8Array {
  if (isUint8Array(value)) return value // `instanceof` fails across realms, for example under Jest with jsdom.
  throw new TypeError(
    `${name} must be the exact bytes as a Uint8Array. Got ${kindOf(value)}. Pass the bytes as they arrived, not decoded or parsed.`,
  )
}

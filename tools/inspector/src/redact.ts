/** Limits and redacts headers, bodies, errors and attempts before they are kept and shown. */

import { isUtf8 } from 'node:buffer'
import { type EndpointHeaders, type HandlerRun, HooklineError } from 'hookline'
import type { Attempt } from 'hookline/sender'
import { explainError, shownHeader } from '../../../src/internals.ts'
import type { AttemptLine, Body, ErrorLine, RequestLine, RunLine } from './wire.ts'

const MAX_MESSAGE = 2_000
const MAX_STACK = 4_000

export const SHORT = 200

export type Described = Readonly<
  Partial<Record<'type' | 'messageId' | 'event' | 'name' | 'groupId' | 'userId' | 'anonymousId', unknown>>
>

/** Returns the event, group or name of a message. */
export function nameOf({ type, event, name, groupId }: Described): unknown {
  return type === 'group' ? idOf(groupId) : (event ?? name)
}

export function userOf({ userId, anonymousId }: Described): unknown {
  return idOf(userId) ?? idOf(anonymousId)
}

/** Returns an id as a string. Some senders write ids as numbers. */
function idOf(id: unknown): string | undefined {
  return typeof id === 'number' ? `${id}` : typeof id === 'string' && id !== '' ? id : undefined
}

export function linesOf(headers: EndpointHeaders, isVerified: boolean): RequestLine['headers'] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const values = typeof value === 'string' ? [value] : (value ?? [])
    return values.map((each) => [name, shownHeader(name, each, isVerified) ?? null] as const)
  })
}

/**
 * Converts an error to a plain object, because the error itself would keep everything that it refers to in memory. For a HooklineError,
 * keeps the stack of its cause instead of its own stack.
 */
export function errorLine(thrown: unknown): ErrorLine {
  const message = copy(explainError(thrown), MAX_MESSAGE)
  try {
    const isOurs = thrown instanceof HooklineError
    const failed = isOurs ? thrown.cause : thrown
    const code = isOurs ? thrown.code : thrown instanceof Error ? copy(thrown.name, 100) : typeof thrown
    const hasStack = failed instanceof Error && !(failed instanceof AggregateError)
    return { code, message, ...(hasStack && { stack: copy(failed.stack ?? '', MAX_STACK) }) }
  } catch {
    return { code: 'error', message } // A getter of the error threw.
  }
}

/** Converts runs of handlers for the page. The name of a handler function may be any value, so it is converted to a string. */
export function runLines(runs: readonly HandlerRun[]): RunLine[] {
  return runs.map(({ on, name, durationMs, error }) => ({
    on,
    name: String(name),
    durationMs,
    ...(error !== undefined && { error: errorLine(error) }),
  }))
}

/** Converts an attempt for the page. */
export function attemptLine({ url, at, durationMs, ok, status, error, reason, body }: Attempt): AttemptLine {
  const found = { ...(status !== undefined && { status }), ...(error !== undefined && { error }) }
  return { url, at: at.getTime(), durationMs, ok, ...found, ...(reason !== undefined && { reason }), body }
}

/** Returns the beginning of a text, without keeping the rest in memory; undefined for an empty text or any other value. */
export function cut(text: unknown, length: number): string | undefined {
  return typeof text === 'string' && text !== '' ? copy(text, length) : undefined
}

/** Copies the beginning of a text. A slice would keep the whole text in memory. */
function copy(text: string, length: number): string {
  return text.length <= length ? text : Buffer.from(text.slice(0, length), 'utf16le').toString('utf16le')
}

/**
 * Prepares a body for the page: replaces each write key with `…`.
 *
 * @param hasKeys Whether the body comes from a client with a write key. If so, a body that cannot be searched for keys is not shown.
 */
export function showBody(bytes: Uint8Array, size: number, hasKeys: boolean): Body {
  if (bytes.length === 0) return { size }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = isUtf8(bytes) ? buffer.toString() : undefined
  if (text === undefined && !hasKeys) return { size, base64: buffer.toString('base64') }
  // A body that is not UTF-8 is not shown, because it may contain a key that is compressed or in another encoding.
  const shown = text === undefined ? undefined : (withoutWriteKeys(text) ?? (hasKeys ? undefined : text))
  return shown === undefined ? { size } : { size, text: shown }
}

/** Captures a string in JSON, the colon after it if the string is a field name, and the bracket after the colon if there is one. */
const STRING = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:\s*([[{])?)?/g

const WRITE_KEY = /write[^a-z0-9]*key/i

/**
 * Replaces write keys in JSON with `…`. Returns undefined if a key may remain, because the text is not JSON or the value of a write
 * key is an object or a list.
 */
function withoutWriteKeys(text: string): string | undefined {
  // Text with a zero byte may be UTF-16, in which the pattern does not find `write`.
  if (!/write|\\u/i.test(text) && !text.includes('\0')) return text
  try {
    JSON.parse(text.replace(/^\ufeff/, ''))
  } catch {
    return undefined
  }
  let isKey = false
  let isHidden = true
  const shown = text.replace(STRING, (whole, token: string, colon: string | undefined, open: string | undefined) => {
    const wasKey = isKey
    isKey = colon !== undefined && WRITE_KEY.test(JSON.parse(token))
    if (isKey && open !== undefined) isHidden = false
    if (colon !== undefined) return whole
    return wasKey || WRITE_KEY.test(JSON.parse(token)) ? '"…"' : whole // The string itself may contain JSON or a URL that has a key.
  })
  return isHidden ? shown : undefined
}

/** A call as it waits: checked, completed and written as JSON, once. */

import { randomUUID } from 'node:crypto'
import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import { CALL_LIMIT } from '../protocol/limits.ts'
import type { Fields } from '../protocol/message.ts'
import { toTimestamp } from '../protocol/timestamp.ts'
import type { CallType } from './api.ts'
import { copyChecked, reasonOf } from './check.ts'

/** A call as it waits. */
export interface Entry {
  /** The call as JSON. */
  readonly text: string
  /** How many bytes of UTF-8 that is. */
  readonly bytes: number
}

/** Makes the entry of a call. */
export type CreateEntry = (type: CallType, call: unknown) => Entry

/** What every context says about who recorded the call: the name and the version of this package. */
const LIBRARY = { name: 'hookline', version: '0.1.0' }
const LIBRARY_ONLY = { library: LIBRARY }

/**
 * Makes entries.
 *
 * @returns A function that throws a TypeError that names the field, and a HooklineError `call_too_large` over 32 KB.
 */
export function createEntries(clock: Clock): CreateEntry {
  const readNow = createNow(clock)

  // Hot path: this is what a call costs. One copy and one JSON.stringify; batches are joined from the text as it is.
  return (type, given) => {
    const call = copyChecked(type, given)
    const { timestamp } = call
    call.type = type
    call.messageId ??= randomUUID()
    call.timestamp = timestamp === undefined ? readNow() : readTimestamp(type, timestamp)
    const text = write(type, call)
    const bytes = Buffer.byteLength(text)
    if (bytes > CALL_LIMIT) throw tooLarge(type, bytes)
    return { text, bytes }
  }
}

/** The time as text. Formatting it costs as much as the rest, so that is done once a millisecond. */
function createNow(clock: Clock): () => string {
  let time = Number.NaN
  let text = ''
  return () => {
    const now = clock.now()
    if (now !== time) {
      time = now
      text = new Date(now).toISOString()
    }
    return text
  }
}

function readTimestamp(type: CallType, value: unknown): string {
  const timestamp = toTimestamp(value)
  if (timestamp !== undefined) return timestamp
  throw new TypeError(`${type}: timestamp must be a Date or ISO 8601, 2026-01-15T09:30:00Z for instance.`)
}

/** The call as JSON, with its context filled in. */
function write(type: CallType, call: Record<string, unknown>): string {
  const { context } = call
  try {
    call.context = context === undefined ? LIBRARY_ONLY : { library: LIBRARY, ...(context as Fields) }
    return JSON.stringify(type === 'page' ? renameTraits(call) : call)
  } catch (cause) {
    const culprit = Object.keys(call).find((field) => !canBeWritten(call[field])) ?? 'the call'
    throw new TypeError(`${type}: ${culprit} cannot be written as JSON. ${reasonOf(cause)}`, { cause })
  }
}

/** What the specification calls the traits of a page travels as its properties. */
function renameTraits(call: Fields): Fields {
  const { traits, ...rest } = call
  return traits === undefined ? call : { ...rest, properties: traits }
}

function canBeWritten(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

function tooLarge(type: CallType, bytes: number): HooklineError {
  const message = `${type}: the call is ${bytes} bytes of JSON, and the limit is ${CALL_LIMIT}.`
  return new HooklineError('call_too_large', message)
}

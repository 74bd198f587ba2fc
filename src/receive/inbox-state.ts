/** Reads and writes the data that an inbox stores with a message: the retry state between attempts, and the note in the log. */

import type { HooklineError, HooklineErrorCode } from '../protocol/error.ts'
import { isObject } from '../protocol/parse.ts'
import type { HandlerNames } from './delivery.ts'
import { explainError } from './failure.ts'

/**
 * Why a message is a dead letter: the code of its last error; `unreadable`, if the stored message cannot be read; or `crashed`, if
 * processes died while they handled the message. If the claims of the queue have a lease, `lease_lapsed` replaces `crashed`: each process
 * died, blocked its event loop or lost its connection to the engine.
 */
export type DeadLetterReason = HooklineErrorCode | 'crashed' | 'unreadable'

/** An error that a handler threw, or another cause of a failed attempt. */
export interface StoredErrorCause {
  /** The name of the error, such as `TypeError`, or the type of a value that is not an Error. */
  readonly name: string
  /** The first 500 characters of the error's message. */
  readonly message: string
  /** The first 2 000 characters of the error's stack. */
  readonly stack?: string
}

/** The error of a failed attempt, as the inbox stores it. */
export interface StoredError {
  readonly code: HooklineErrorCode
  /** The text of the value that the first failed handler threw; if no handler threw, the text of the error. */
  readonly message: string
  /** The field at fault, as a dotted path, if a single field is at fault. */
  readonly path?: string
  /** The errors that handlers threw, at most 10. If no handler threw, another cause of the error. */
  readonly causes: readonly StoredErrorCause[]
}

export interface RetryState {
  readonly attempts: number
  /** How often the message was released before an attempt had ended, for example by a shutdown. */
  readonly releases: number
  readonly error?: StoredError
  readonly handlers?: HandlerNames | undefined
  /** The handlers that wait because of their pace: the name of each, and the time of its turn in milliseconds since the epoch. */
  readonly turns?: readonly (readonly [name: string, at: number])[]
}

/** Reads a retry state. Returns `otherwise` if the state is unreadable. */
export function readRetryState(stored: Uint8Array | undefined, otherwise: RetryState = INITIAL): RetryState {
  if (stored === undefined) return INITIAL
  const state = parseObject(stored)
  const isWhole = Number.isInteger(state?.attempts) && Number.isInteger(state?.releases)
  return isWhole ? (state as unknown as RetryState) : otherwise
}

export function writeRetryState(state: RetryState): Uint8Array {
  return Buffer.from(JSON.stringify(state))
}

export const INITIAL: RetryState = { attempts: 0, releases: 0 }
const decoder = new TextDecoder()

function parseObject(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes))
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function toStoredError(error: HooklineError): StoredError {
  const { code, path, cause } = error
  const message = explainError(error)
  const thrown: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause]
  const causes = thrown.filter((each) => each !== undefined).slice(0, MAX_CAUSES)
  return { code, message, ...(path !== undefined && { path }), causes: causes.map(toStoredCause) }
}

const MAX_CAUSES = 10

function toStoredCause(thrown: unknown): StoredErrorCause {
  try {
    if (!(thrown instanceof Error)) return { name: typeof thrown, message: cut(thrown, 500) }
    const { name, message, stack } = thrown
    return { name: cut(name, 100), message: cut(message, 500), ...(stack && { stack: cut(stack, 2_000) }) }
  } catch {
    return { name: typeof thrown, message: 'The thrown value cannot be converted to text.' }
  }
}

function cut(value: unknown, length: number): string {
  return String(value).slice(0, length)
}

/** The note of a handled message in the log. */
export interface Note {
  /** The names of the handlers that are done. The list is empty when no handler has a name. */
  readonly handlers: readonly string[]
  /** Whether no handler matched. */
  readonly ignored: boolean
}

const NO_NOTE: Note = { handlers: [], ignored: false }
const NO_BYTES = new Uint8Array()

/** Writes a note. Returns no bytes for a note without information, because most notes have none. */
export function writeNote({ handlers, ignored }: Note): Uint8Array {
  const isNamed = handlers.length > 0
  if (!isNamed && !ignored) return NO_BYTES
  return Buffer.from(JSON.stringify({ handlers: isNamed ? handlers : undefined, ignored: ignored || undefined }))
}

/** Reads a note. Treats an unreadable note as a note without information. */
export function readNote(bytes: Uint8Array): Note {
  if (bytes.byteLength === 0) return NO_NOTE // JSON.parse would throw, which costs time for each entry of the log.
  const { handlers, ignored } = parseObject(bytes) ?? {}
  return { handlers: isTexts(handlers) ? handlers : [], ignored: ignored === true }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

/** Checks a call, completes it and writes it as JSON, once ("Go client library", Message types). */

import { randomUUID } from 'node:crypto'
import manifest from '../../package.json' with { type: 'json' }
import type { Clock } from '../kit/clock.ts'
import { describeError, HooklineError, kindOf } from '../protocol/error.ts'
import { CALL_LIMIT } from '../protocol/limits.ts'
import type { Fields } from '../protocol/message.ts'
import { toTimestamp } from '../protocol/timestamp.ts'
import { ALIAS_IDS, CALL_OBJECTS, type CallType, TYPES } from '../protocol/type-table.ts'
import type { RecordedCall } from './client-types.ts'

export interface BufferedCall {
  readonly json: string
  readonly bytes: number
}

const LIBRARY = { name: manifest.name, version: manifest.version }
const LIBRARY_ONLY = { library: LIBRARY }

export function createCallWriter(clock: Clock): (type: CallType, given: unknown) => BufferedCall {
  const readNow = createNowReader(clock)

  // This function is a hot path, because it runs for every call. It makes one copy and one JSON text; batches are joined from these texts.
  return (type, given) => {
    const call = copyCall(type, given)
    checkCall(type, call)
    const { timestamp } = call
    call.type = type
    call.messageId ??= randomUUID()
    call.timestamp = timestamp === undefined ? readNow() : toTimestamp(timestamp)
    if (call.timestamp === undefined) {
      throw wrongField(type, 'timestamp', TIME, timestamp, 'a time such as 2026-01-15T09:30:00Z')
    }
    const json = writeWithLibrary(type, call)
    const bytes = Buffer.byteLength(json)
    if (bytes > CALL_LIMIT) throw tooLargeError(type, bytes)
    return { json, bytes }
  }
}

export function readCall({ json }: BufferedCall): RecordedCall {
  return JSON.parse(json)
}

/**
 * Creates a function that returns the time as text. It formats the time at most once per millisecond, because formatting costs as much as
 * the rest of a call.
 */
function createNowReader(clock: Clock): () => string {
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

/** Copies the call, so that the values that are checked are also those that are written, even if a getter returns another value later. */
function copyCall(type: CallType, given: unknown): Record<string, unknown> {
  if (!isPlain(given)) {
    throw notPlain(`${type}: the call`, given, "the fields of the call, for example { userId: 'user-1' }")
  }
  try {
    return { ...given }
  } catch (cause) {
    throw new TypeError(`${type}: the call cannot be read: ${describeError(cause)}. Pass plain data.`, { cause })
  }
}

function checkCall(type: CallType, call: Fields): void {
  if (hasToJson(call)) throw wrongField(type, 'toJSON', 'must not be a function', call.toJSON, 'plain data')
  const { ids, requiredText, optionalText } = TYPES[type]
  if (ids === 'alias') for (const [spaced, plain] of ALIAS_IDS) requireAliasId(call, spaced, plain)
  else requireActor(type, call)
  if (requiredText !== undefined) requireText(type, call, requiredText)
  for (const field of optionalText ?? []) {
    const { [field]: text = '' } = call
    if (typeof text !== 'string') throw wrongField(type, field, 'must be a string', text, 'a string')
  }
  if (type === 'page' && call.traits !== undefined && call.properties !== undefined) {
    throw new TypeError('page: `traits` is an alias of `properties`. Pass only one of them.')
  }
  if (call.messageId !== undefined) requireText(type, call, 'messageId')
  for (const field of CALL_OBJECTS) {
    if (call[field] !== undefined) requireObject(type, field, call[field])
  }
}

const TEXT = 'must be a non-empty string'
const TIME = 'must be a Date or an ISO 8601 string'

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function requireText(type: CallType, call: Fields, field: string): void {
  if (!isText(call[field])) throw wrongField(type, field, TEXT, call[field], 'a string of at least one character')
}

/** Requires an id of an alias in the spelling of calls. The spelling of messages may also be set, to the same id or to an empty text. */
function requireAliasId(call: Fields, spaced: string, plain: string): void {
  requireText('alias', call, plain)
  const other = call[spaced] ?? ''
  if (other === '' || other === call[plain]) return
  const rule = `\`${spaced}\` must equal \`${plain}\`, its other spelling`
  throw new TypeError(`alias: ${rule}. Pass \`${plain}\` alone.`)
}

function requireActor(type: CallType, call: Fields): void {
  const { userId = null, anonymousId = null } = call
  if (userId !== null) requireText(type, call, 'userId')
  if (anonymousId !== null) requireText(type, call, 'anonymousId')
  if (userId === null && anonymousId === null) {
    throw wrongField(type, 'userId', `${TEXT}, or be replaced by \`anonymousId\``, call.userId, 'one of the two')
  }
}

function requireObject(type: CallType, field: string, value: unknown): void {
  if (!isPlain(value)) throw notPlain(`${type}: \`${field}\``, value, 'an object literal')
  if (hasToJson(value)) throw wrongField(type, field, 'must not have a toJSON method', value, 'plain data')
}

/**
 * Returns whether a value is an object, but neither a list nor an instance of a class. A Map, for example, would lose its contents as JSON.
 */
function isPlain(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  // The last condition admits objects of other realms: their prototype is another Object.prototype, which has no prototype either.
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

function hasToJson(value: Fields): boolean {
  return typeof value.toJSON === 'function'
}

/** Adds the name of the library to the context, and writes the call as JSON. */
function writeWithLibrary(type: CallType, call: Record<string, unknown>): string {
  const { context } = call
  try {
    call.context = context === undefined ? LIBRARY_ONLY : { library: LIBRARY, ...(context as Fields) }
    return JSON.stringify(type === 'page' ? renameTraits(call) : call)
  } catch (cause) {
    const field = Object.keys(call).find((name) => !isWritable(call[name]))
    const culprit = field === undefined ? 'the call' : `\`${field}\``
    const fault = `${type}: ${culprit} cannot be written as JSON: ${describeError(cause)}`
    throw new TypeError(`${fault}. Pass plain data.`, { cause })
  }
}

function renameTraits(call: Fields): Fields {
  const { traits, ...rest } = call
  return traits === undefined ? call : { ...rest, properties: traits }
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

function notPlain(what: string, value: unknown, advice: string): TypeError {
  const kind = kindOf(value)
  const found = kind === 'an object' ? 'an instance of a class' : kind
  return new TypeError(`${what} must be a plain object. Got ${found}. Pass ${advice}.`)
}

function wrongField(type: CallType, field: string, rule: string, value: unknown, advice: string): TypeError {
  return new TypeError(`${type}: \`${field}\` ${rule}. Got ${kindOf(value)}. Pass ${advice}.`)
}

function tooLargeError(type: CallType, bytes: number): HooklineError {
  return new HooklineError(
    'call_too_large',
    `${type}: the call must be at most ${CALL_LIMIT} bytes of JSON. Got ${bytes} bytes. Pass fewer or shorter fields.`,
  )
}

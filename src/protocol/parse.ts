/** Turns the bytes of a body into a checked message, or into an error that names the field. */

import { HooklineError, invalidField, kindOf, requireBytes } from './error.ts'
import type { Message, ReceivedMessage } from './message.ts'
import { showText } from './show-text.ts'
import { timestampOf } from './timestamp.ts'
import {
  ALIAS_IDS,
  CALL_OBJECTS,
  isMessageType,
  MESSAGE_OBJECTS,
  TYPE_NAMES,
  TYPES,
  type TypeRule,
} from './type-table.ts'

export type Json = Record<string, unknown>

/**
 * Parses a body into one of the seven messages ("Outbound event delivery", Delivered message fields). Does not check who sent the body:
 * verify the bytes first.
 *
 * Checks these fields:
 *
 * - `type` is one of the seven types.
 * - A `delete` has a `userId`. An alias has both ids, each in either spelling. Any other message has a `userId`, or an `anonymousId` in
 *   place of a null, empty or absent `userId`.
 * - A track has an `event`, and a group has a `groupId`.
 * - If present, `timestamp` is a string, and `properties`, `traits` and `context` are objects.
 *
 * Keeps all other fields, except `__proto__` and `constructor.prototype`, which are dropped at any depth.
 *
 * An id that is a number becomes its decimal text; a `timestamp` that is a number (milliseconds, or seconds below 100 000 000 000) becomes
 * ISO 8601 text. A null in place of an object or a `timestamp` is dropped, as is an empty id that the message does not need.
 *
 * @param body UTF-8 bytes of one JSON object.
 * @throws HooklineError `body_not_json`, `message_type_unknown`, or `message_invalid` with the field as `path`.
 * @throws TypeError for a body that is not bytes.
 */
export function parse(body: Uint8Array): Message {
  return checkMessage(parseObject(requireBytes(body, 'parse: body')))
}

export function parseReceived(body: Uint8Array, acceptsCustom: boolean): ReceivedMessage {
  return checkReceived(parseJson(body), acceptsCustom)
}

/** Checks a parsed body for a receiver. With `acceptsCustom`, JSON whose `type` is not one of the seven types is a custom message. */
export function checkReceived(value: unknown, acceptsCustom: boolean): ReceivedMessage {
  if (acceptsCustom && !(isObject(value) && isMessageType(value.type))) return { type: 'custom', body: value }
  return checkMessage(
    requireObject(value),
    'one of them, or set the `custom` option of the receiver to accept other JSON',
  )
}

/** Checks an object as {@link parse} does, and returns it as a message: normalised, with both spellings of an alias's ids. */
function checkMessage(message: Json, types?: string): Message {
  normalise(message)
  return requireMessage(message, types)
}

/** Checks an object that must have the documented form. Adds the missing spellings of an alias's ids to the object. */
export function requireMessage(message: Json, types = 'one of them'): Message {
  const { type } = message
  if (!isMessageType(type)) {
    const code = type === undefined ? 'message_invalid' : 'message_type_unknown'
    throw invalidField(code, 'type', `must be one of ${TYPE_NAMES}`, showText(type), types)
  }
  for (const field of MESSAGE_OBJECTS) {
    const value = message[field]
    if (value !== undefined && !isObject(value)) throw invalid(field, OBJECT, value, 'an object, or omit it')
  }
  if (message.timestamp !== undefined && typeof message.timestamp !== 'string') {
    throw invalid('timestamp', 'must be a string when present', message.timestamp, 'an ISO 8601 string, or omit it')
  }
  const { ids, requiredText } = TYPES[type]
  requireIds[ids](message)
  if (requiredText !== undefined) requireText(message, requiredText)
  return message as unknown as Message
}

const requireIds: Readonly<Record<TypeRule['ids'], (message: Json) => void>> = {
  actor: requireActor,
  user: (message) => requireText(message, 'userId'),
  alias(message) {
    for (const [spaced, plain] of ALIAS_IDS) joinSpellings(message, spaced, plain)
  },
}

const OBJECT = 'must be an object when present'
const TEXT = 'must be a non-empty string'

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function requireText(message: Json, field: string): void {
  const value = message[field]
  if (!isText(value))
    throw invalid(field, TEXT, value, `a non-empty string as ${field} with every ${message.type} message`)
}

function requireActor(message: Json): void {
  const { userId, anonymousId, type } = message
  if (userId !== undefined && userId !== null) requireText(message, 'userId')
  else if (!isText(anonymousId)) {
    throw invalid(
      'userId',
      `${TEXT}, or be replaced by \`anonymousId\``,
      userId,
      `one of the two with every ${type} message`,
    )
  }
}

/** Writes an id of an alias in both spellings, whichever of them the message has. */
function joinSpellings(message: Json, spaced: string, plain: string): void {
  const [first, second] = [message[spaced], message[plain]]
  const id = isMissing(first) ? (second ?? first) : first
  if (!isText(id)) throw invalid(spaced, `${TEXT}, or be replaced by \`${plain}\``, id, 'it with every alias message')
  if (!isMissing(second) && second !== id) {
    const rule = `must equal \`${plain}\`, its other spelling`
    throw invalidField('message_invalid', spaced, rule, 'two different values', 'only one of the two')
  }
  message[spaced] = id
  message[plain] = id
}

function isMissing(id: unknown): boolean {
  return id === undefined || id === null || id === ''
}

function invalid(path: string, rule: string, value: unknown, advice: string): Error {
  return invalidField('message_invalid', path, rule, kindOf(value), advice)
}

/** Parses a body. Drops `__proto__` and `constructor.prototype` at any depth. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // The message of JSON.parse quotes the body, so only the position is kept.
    const position = / at position \d+/.exec(String(error))?.[0] ?? ''
    throw notJson('The body must be valid JSON', `${bytes.length} bytes${position && `, with an error${position}`}`)
  }
  if (mayHoldHostileKeys(text)) dropHostileKeys(value)
  return value
}

export function parseObject(bytes: Uint8Array): Json {
  return requireObject(parseJson(bytes))
}

function requireObject(value: unknown): Json {
  if (isObject(value)) return value
  throw notJson('The body must be a single JSON object', kindOf(value))
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function notJson(fault: string, found: string): HooklineError {
  return new HooklineError('body_not_json', `${fault}. Got ${found}. Send one JSON object per request, in UTF-8.`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw notJson('The body must be valid UTF-8', `${bytes.length} bytes of other data`)
  }
}

/** Quickly checks whether a key in this JSON could be `__proto__` or `prototype`, even if it is written with escapes. */
function mayHoldHostileKeys(text: string): boolean {
  return text.includes('proto') || text.includes('\\u00')
}

/** Drops every `__proto__`, and every `prototype` of a `constructor`: code that copies such keys could change a prototype. */
function dropHostileKeys(value: unknown): void {
  const rest = [value] // A list replaces recursion, because JSON may nest deeper than the stack allows.
  while (rest.length > 0) {
    const node = rest.pop()
    if (typeof node !== 'object' || node === null) continue
    if (Object.hasOwn(node, '__proto__')) Reflect.deleteProperty(node, '__proto__')
    if (Object.hasOwn(node, 'constructor') && isObject(node.constructor)) {
      Reflect.deleteProperty(node.constructor, 'prototype')
    }
    for (const child of Object.values(node)) rest.push(child)
  }
}

const IDS = ['userId', 'anonymousId', 'groupId', 'messageId', 'previousId', 'Previous ID', 'User ID'] as const
const NULLABLE = [...CALL_OBJECTS, 'timestamp'] as const

/**
 * Rewrites the fields of a received message or call in the documented form, before the fields are checked. A number in an id becomes its
 * decimal text; a number in a time becomes ISO 8601 text. A null in place of an object or a time is deleted, as is an empty id that the
 * message does not need.
 */
export function normalise(message: Json): void {
  for (const field of IDS) {
    const value = message[field]
    if (typeof value === 'number') message[field] = readId(value) ?? value
    else if (value === '' && isDispensable(field, message)) Reflect.deleteProperty(message, field)
  }
  for (const field of NULLABLE) if (message[field] === null) Reflect.deleteProperty(message, field)
  const { timestamp } = message
  if (typeof timestamp === 'number') message.timestamp = timestampOf(timestamp) ?? timestamp
}

/** Returns whether a message does not need an id. An empty id that is required stays, so that the error says that the id is empty. */
function isDispensable(field: string, { type, anonymousId }: Json): boolean {
  if (field !== 'userId') return field === 'anonymousId' || field === 'messageId'
  return type !== 'delete' && type !== 'alias' && readId(anonymousId) !== undefined
}

/**
 * Reads an id: text, or a number as its decimal text. Returns undefined for empty text and any other value.
 *
 * A number beyond 2^53 - 1 is not an id: JSON.parse has lost its last digits, so two users could become one.
 */
export function readId(value: unknown): string | undefined {
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}

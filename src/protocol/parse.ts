/** Turns the bytes of a body into a checked message, or into an error that names the field. */

import { invalidField, kindOf, requireBytes } from './error.ts'
import { isObject, type Json, parseJson, parseObject, requireObject } from './json.ts'
import type { Message, ReceivedMessage } from './message.ts'
import { normalise } from './normalise.ts'
import { showText } from './show-text.ts'
import { ALIAS_IDS, isMessageType, MESSAGE_OBJECTS, TYPE_NAMES, TYPES, type TypeRule } from './type-table.ts'

/**
 * Parses a body into one of the seven messages ("Outbound event delivery", Delivered message fields).
 * Does not check who sent it: verify the bytes first.
 *
 * Checks `type`; an id (`userId`, or `anonymousId` beside a null, empty or absent `userId`; `delete` needs `userId`);
 * `event` of a track, `groupId` of a group, both ids of an alias, in either spelling; that `timestamp` is a string and
 * `properties`, `traits` and `context` are objects when present. Keeps other fields, except `__proto__` and
 * `constructor.prototype`, which it drops at any depth.
 *
 * An id that is a number becomes its decimal text, a `timestamp` that is a number (milliseconds, or seconds below 100 000 000 000)
 * ISO 8601. Null for an object or a `timestamp`, and an empty id beside another one, are left out.
 *
 * @param body UTF-8 bytes of one JSON object.
 * @throws HooklineError `body_not_json`, `message_type_unknown`, or `message_invalid` with the field as `path`.
 * @throws TypeError for a body that is not bytes.
 */
export function parse(body: Uint8Array): Message {
  return checkMessage(parseObject(requireBytes(body, 'parse: body')))
}

/** Parses a body for a receiver. */
export function parseReceived(body: Uint8Array, takesCustom: boolean): ReceivedMessage {
  return checkReceived(parseJson(body), takesCustom)
}

/** Checks a parsed body for a receiver: with `custom`, what does not say that it is one of the seven is a custom message. */
export function checkReceived(value: unknown, takesCustom: boolean): ReceivedMessage {
  if (takesCustom && !(isObject(value) && isMessageType(value.type))) return { type: 'custom', body: value }
  return checkMessage(requireObject(value), 'one of them, or set `custom` of the receiver to take other JSON')
}

/** Checks an object as {@link parse} does, and returns it as a message: normalised, and with both spellings of an alias's ids. */
function checkMessage(message: Json, types?: string): Message {
  normalise(message)
  return requireMessage(message, types)
}

/** Checks an object that must have the documented form. Adds the missing spellings of an alias's ids to it. */
export function requireMessage(message: Json, types = 'one of them'): Message {
  const { type } = message
  if (!isMessageType(type)) {
    const code = type === undefined ? 'message_invalid' : 'message_type_unknown'
    throw invalidField(code, 'type', `must be one of ${TYPE_NAMES}`, showText(type), types)
  }
  for (const field of MESSAGE_OBJECTS) {
    const value = message[field]
    if (value !== undefined && !isObject(value)) throw invalid(field, OBJECT, value, 'an object, or leave it out')
  }
  if (message.timestamp !== undefined && typeof message.timestamp !== 'string') {
    throw invalid('timestamp', 'must be a string when present', message.timestamp, 'ISO 8601 text, or leave it out')
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
  if (!isText(value)) throw invalid(field, TEXT, value, `it with every ${message.type}`)
}

function requireActor(message: Json): void {
  const { userId, anonymousId, type } = message
  if (userId !== undefined && userId !== null) requireText(message, 'userId')
  else if (!isText(anonymousId)) {
    throw invalid('userId', `${TEXT}, or \`anonymousId\` in its place`, userId, `one of the two with every ${type}`)
  }
}

function joinSpellings(message: Json, spaced: string, plain: string): void {
  const [one, two] = [message[spaced], message[plain]]
  const [id = one ?? two, other = id] = [one, two].filter((value) => (value ?? '') !== '')
  if (!isText(id)) throw invalid(spaced, `${TEXT}, or \`${plain}\` in its place`, id, 'it with every alias')
  if (id !== other) {
    const rule = `must equal \`${plain}\`, its other spelling`
    throw invalidField('message_invalid', spaced, rule, 'two different values', 'one of the two')
  }
  message[spaced] = id
  message[plain] = id
}

function invalid(path: string, rule: string, value: unknown, advice: string): Error {
  return invalidField('message_invalid', path, rule, kindOf(value), advice)
}

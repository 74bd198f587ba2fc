/** Turns the bytes of a body into a message, or into an error that names the field. */

import { requireBytes } from './body.ts'
import { HooklineError } from './error.ts'
import { isObject, type Json, notJson, parseJson } from './json.ts'
import { isMessageType, type Message, TYPE_NAMES } from './message.ts'

/**
 * Parses a body into one of the seven messages ("Outbound event delivery", Delivered message fields).
 * Says nothing about who sent it: verify the bytes first.
 *
 * Checked: `type`; an id (`userId`, or `anonymousId` beside a null or absent `userId`; `delete` needs `userId`);
 * `event` of a track, `groupId` of a group, both ids of an alias, under either spelling; `timestamp` is a string and
 * `properties`, `traits` and `context` are objects when given. Other fields stay as they are, but for
 * `__proto__` and `constructor.prototype`, which are dropped wherever they stand.
 *
 * @param body UTF-8 bytes of one JSON object.
 * @throws HooklineError `body_not_json`, `message_type_unknown`, or `message_invalid` with the field as `path`.
 * @throws TypeError for a body that is not bytes.
 */
export function parse(body: Uint8Array): Message {
  return checkMessage(readObject(requireBytes(body, 'parse: body')))
}

function readObject(bytes: Uint8Array): Json {
  const value = parseJson(bytes)
  if (isObject(value)) return value
  throw notJson(
    Array.isArray(value)
      ? 'The body is an array. Batches are refused: send one message a request.'
      : 'The body is not a JSON object.',
  )
}

/**
 * Checks an object that is to be a message; see {@link parse} for what is checked. Completes the spellings of an alias.
 *
 * @throws HooklineError `message_type_unknown`, or `message_invalid` with the field as `path`.
 */
export function checkMessage(message: Json): Message {
  const { type } = message
  if (type === undefined) throw invalid('type', `is missing; it is one of ${TYPE_NAMES}`)
  if (!isMessageType(type)) {
    throw new HooklineError('message_type_unknown', `type is not one of ${TYPE_NAMES}.`, { path: 'type' })
  }
  for (const field of OBJECTS) {
    const value = message[field]
    if (value !== undefined && !isObject(value)) throw invalid(field, 'must be an object when given')
  }
  if (message.timestamp !== undefined && typeof message.timestamp !== 'string') {
    throw invalid('timestamp', 'must be a string when given')
  }
  switch (type) {
    case 'alias':
      joinSpellings(message, 'Previous ID', 'previousId')
      joinSpellings(message, 'User ID', 'userId')
      break
    case 'delete':
      requireText(message, 'userId')
      break
    default:
      requireActor(message)
  }
  if (type === 'track') requireText(message, 'event')
  if (type === 'group') requireText(message, 'groupId')
  return message as unknown as Message
}

const OBJECTS = ['properties', 'traits', 'context'] as const

const NO_TEXT = 'must be a string that is not empty'

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function requireText(message: Json, field: string): void {
  if (!isText(message[field])) throw invalid(field, NO_TEXT)
}

function requireActor(message: Json): void {
  if (message.userId !== undefined && message.userId !== null) requireText(message, 'userId')
  else if (!isText(message.anonymousId)) {
    throw invalid('userId', `${NO_TEXT}, or anonymousId in its place`)
  }
}

/** The specification spells the ids of an alias with spaces, libraries without; afterwards both are there. */
function joinSpellings(message: Json, spaced: string, plain: string): void {
  const id = message[spaced] ?? message[plain]
  if (!isText(id)) {
    throw invalid(spaced, `${NO_TEXT}, or ${plain} in its place`)
  }
  message[spaced] = id
  message[plain] = id
}

function invalid(path: string, fault: string): HooklineError {
  return new HooklineError('message_invalid', `${path} ${fault}.`, { path })
}

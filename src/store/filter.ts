/** The filter that the history, replays and dead letters use to select messages. */

import { invalidOption, kindOf, requireOneOf, requireText, requireTime, show } from '../kit/checks.ts'
import { usersOf } from '../protocol/identity.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { isObject } from '../protocol/parse.ts'
import { isMessageType, RECEIVED_TYPES } from '../protocol/type-table.ts'

/** A value with which a field of a message is compared. */
export type FieldValue = string | number | boolean | null

/** Selects the messages of an inbox that match every given condition. */
export interface MessageFilter {
  /** Selects messages that were handled, or became dead letters, at this time or later. */
  readonly since?: Date
  /** Selects messages that were handled, or became dead letters, before this time. */
  readonly until?: Date
  /** Selects messages of this type. The type `custom` selects messages that have none of the seven standard types. */
  readonly type?: ReceivedMessage['type']
  /** Selects track messages with this event name. */
  readonly event?: string
  /**
   * Selects messages with this id as their `userId`, their `anonymousId` or, in an alias message, their previous id. Never selects `delete`
   * messages.
   */
  readonly userId?: string
  /**
   * Selects messages whose fields, as they were sent, have exactly these values. Each name is a path with dots, such as
   * `properties.order_id` or `properties.products.0.sku`. Each value is a string, a number, a boolean or null. If an object on the path has
   * a key that equals the whole rest of the path, dots included, that key takes precedence.
   */
  readonly where?: Readonly<Record<string, FieldValue>>
}

export const MESSAGE_FILTERS = [
  'since',
  'until',
  'type',
  'event',
  'userId',
  'where',
] as const satisfies (keyof MessageFilter)[]

/**
 * Checks the conditions of a filter.
 *
 * @throws TypeError that names the condition.
 */
export function requireFilter(call: string, { since, until, type, event, userId, where }: MessageFilter): void {
  requireTime(`${call}: since`, since)
  requireTime(`${call}: until`, until)
  if (since !== undefined && until !== undefined && since >= until) {
    const found = `${until.toISOString()}, which is not after ${since.toISOString()}`
    throw invalidOption(`${call}: until`, 'must be after `since`', found, 'Pass a later time.')
  }
  if (type !== undefined) requireOneOf(`${call}: type`, type, RECEIVED_TYPES)
  if (event !== undefined) requireText(`${call}: event`, event, 'Order Completed')
  if (event !== undefined && type !== undefined && type !== 'track') {
    const advice = "Omit `type`, or pass the type 'track'."
    throw invalidOption(`${call}: event`, 'selects only track messages', `type '${type}'`, advice)
  }
  if (userId !== undefined) requireText(`${call}: userId`, userId, 'user-1')
  if (where !== undefined) requireFields(`${call}: where`, where)
}

function requireFields(name: string, where: unknown): void {
  if (!isObject(where) || Object.keys(where).length === 0) {
    const advice = "Pass conditions such as { 'properties.order_id': 42 }."
    throw invalidOption(
      name,
      'must name at least one field and its value',
      isObject(where) ? '{}' : kindOf(where),
      advice,
    )
  }
  for (const [path, value] of Object.entries(where)) {
    if (value === null || Number.isFinite(value) || typeof value === 'string' || typeof value === 'boolean') continue
    const advice =
      'Pass such a value, or omit the field. To compare a part of a list or an object, add its name to the path.'
    throw invalidOption(`${name}: ${path}`, 'must be a string, a number, a boolean or null', show(value), advice)
  }
}

/** Returns a function that tells whether a time is at or after `since`, and before `until`. */
export function matchTimes({ since, until }: MessageFilter): (at: Date) => boolean {
  return (at) => (since === undefined || at >= since) && (until === undefined || at < until)
}

/** Returns a function that tells whether the body of a message matches all conditions except the times. */
export function matchMessage({ type, event, userId, where = {} }: MessageFilter): (body: Uint8Array) => boolean {
  const fields = Object.entries(where)
  // The texts that a matching body contains. Numbers are left out, because a number can be written in several ways, such as 42 and 42.0.
  const texts = [type === 'custom' ? undefined : type, event, userId, ...Object.values(where), ...namesIn(where)]
    .filter((text) => typeof text === 'string')
    .map((text) => Buffer.from(text))
  return (body) => {
    // Parsing is slow, so a body is parsed only if it contains all of these texts, or a backslash, which may escape some of them.
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    if (!texts.every((text) => bytes.includes(text)) && !bytes.includes(BACKSLASH)) return false
    if (texts.length === 0 && type === undefined) return true
    const message = readJson(body)
    if (userId !== undefined && !usersOf(message).includes(userId)) return false
    if (!fields.every(([path, value]) => fieldAt(message, path) === value)) return false
    const { type: typeOf, event: eventOf } = isObject(message) ? message : {}
    if (type === 'custom') return message !== undefined && !isMessageType(typeOf)
    if (type !== undefined && typeOf !== type) return false
    return event === undefined || (typeOf === 'track' && eventOf === event)
  }
}

/**
 * Lists the names that a message with these paths must contain. The indexes of list elements are left out, because they do not appear in
 * the JSON.
 */
function namesIn(where: object): string[] {
  return Object.keys(where).flatMap((path) => path.split('.').filter((name) => !/^\d+$/.test(name)))
}

/** Returns the value at a path; undefined if the path leads to no value. A key that equals the whole path takes precedence. */
function fieldAt(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  const whole = ownField(value, path)
  const dot = path.indexOf('.')
  if (whole !== undefined || dot === -1) return whole
  return fieldAt(ownField(value, path.slice(0, dot)), path.slice(dot + 1))
}

function ownField(value: object, key: string): unknown {
  const { enumerable, value: found } = Object.getOwnPropertyDescriptor(value, key) ?? {}
  return enumerable ? found : undefined // Skips the `length` of a list, which is not enumerable and was not sent.
}

const BACKSLASH = 0x5c

function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder()

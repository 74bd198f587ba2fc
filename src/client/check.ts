/** Copies a call as it is recorded, and checks its fields ("Go client library", Message types). */

import type { Fields } from '../protocol/message.ts'
import type { CallType } from './api.ts'

/**
 * Lets a complete call pass.
 *
 * @returns A copy, whose fields are what was checked, whatever getters say later.
 * @throws TypeError that names the call and the field: `track: event must be …`.
 */
export function copyChecked(type: CallType, given: unknown): Record<string, unknown> {
  const call = copy(type, given)
  if (hasToJson(call)) throw wrong(type, 'toJSON', 'must not be there: the call is written as it is')
  if (type === 'alias') {
    requireText(type, call, 'userId')
    requireText(type, call, 'previousId')
  } else {
    requireActor(type, call)
    if (type === 'track') requireText(type, call, 'event')
    else if (type === 'group') requireText(type, call, 'groupId')
    else if (type !== 'identify') checkView(type, call)
  }
  optionalText(type, call, 'messageId')
  optionalObject(type, call, 'properties')
  optionalObject(type, call, 'traits')
  optionalObject(type, call, 'context')
  optionalObject(type, call, 'integrations')
  return call
}

function copy(type: CallType, given: unknown): Record<string, unknown> {
  if (!isPlain(given)) throw new TypeError(`${type}: give it a plain object, for instance { userId: 'user-1', … }.`)
  try {
    return { ...given }
  } catch (cause) {
    throw new TypeError(`${type}: the call cannot be read. ${reasonOf(cause)}`, { cause })
  }
}

/** Whether something else would be written in its place. */
function hasToJson(value: Fields): boolean {
  return typeof value.toJSON === 'function'
}

/** A page or a screen. */
function checkView(type: CallType, call: Fields): void {
  for (const field of ['name', 'category']) {
    const value = call[field]
    if (value !== undefined && typeof value !== 'string') throw wrong(type, field, 'must be a string when given')
  }
  if (type === 'page' && call.traits !== undefined && call.properties !== undefined) {
    throw wrong(type, 'traits', 'is another name of properties. Give one of the two')
  }
}

const NO_TEXT = 'must be a string that is not empty'

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function requireText(type: CallType, call: Fields, field: string): void {
  if (!isText(call[field])) throw wrong(type, field, NO_TEXT)
}

function optionalText(type: CallType, call: Fields, field: string): void {
  const value = call[field]
  if (value !== undefined && !isText(value)) throw wrong(type, field, `${NO_TEXT}, when given`)
}

function requireActor(type: CallType, call: Fields): void {
  const { userId = null, anonymousId = null } = call
  if (userId !== null && !isText(userId)) throw wrong(type, 'userId', NO_TEXT)
  if (anonymousId !== null && !isText(anonymousId)) throw wrong(type, 'anonymousId', NO_TEXT)
  if (userId === null && anonymousId === null) throw wrong(type, 'userId', `${NO_TEXT}, or anonymousId in its place`)
}

function optionalObject(type: CallType, call: Fields, field: string): void {
  const value = call[field]
  if (value === undefined) return
  if (!isPlain(value)) throw wrong(type, field, 'must be a plain object when given')
  if (hasToJson(value)) throw wrong(type, field, 'must have no toJSON: it is written as it is')
}

/** Whether JSON holds all of it: not a list, and no object of a class, whose contents JSON may leave out (a Map). */
function isPlain(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  // The plain objects of another realm have another Object.prototype.
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

/** What was thrown, for a person. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : 'A getter or a toJSON() threw.'
}

function wrong(type: CallType, field: string, fault: string): TypeError {
  return new TypeError(`${type}: ${field} ${fault}.`)
}

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
  const readNow = createNow(clock)

  // Hot path: this is the cost of a call. One copy and one JSON.stringify; batches are joined from the JSON.
  return (type, given) => {
    const call = copy(type, given)
    check(type, call)
    const { timestamp } = call
    call.type = type
    call.messageId ??= randomUUID()
    call.timestamp = timestamp === undefined ? readNow() : toTimestamp(timestamp)
    if (call.timestamp === undefined) {
      throw wrong(type, 'timestamp', TIME, timestamp, 'a time such as 2026-01-15T09:30:00Z')
    }
    const json = write(type, call)
    const bytes = Buffer.byteLength(json)
    if (bytes > CALL_LIMIT) throw tooLarge(type, bytes)
    return { json, bytes }
  }
}

export function readCall({ json }: BufferedCall): RecordedCall {
  return JSON.parse(json) as RecordedCall
}

/** Reads the time as text, formatted once a millisecond: formatting costs as much as the rest of a call. */
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

/** Copies the call, so that the fields that are checked are those that are written, whatever getters return later. */
function copy(type: CallType, given: unknown): Record<string, unknown> {
  if (!isPlain(given)) {
    throw new TypeError(
      `${type}: the call must be a plain object, not of a class. Got ${kindOf(given)}. Pass its fields, for example { userId: 'user-1' }.`,
    )
  }
  try {
    return { ...given }
  } catch (cause) {
    throw new TypeError(`${type}: the call cannot be read. Got an error: ${describeError(cause)}. Pass plain data.`, {
      cause,
    })
  }
}

function check(type: CallType, call: Fields): void {
  if (hasToJson(call)) throw wrong(type, 'toJSON', 'must not be a function', call.toJSON, 'plain data')
  const { ids, requiredText, optionalText } = TYPES[type]
  if (ids === 'alias') for (const [spaced, plain] of ALIAS_IDS) requireOneId(call, spaced, plain)
  else requireActor(type, call)
  if (requiredText !== undefined) requireText(type, call, requiredText)
  for (const field of optionalText ?? []) {
    const { [field]: text = '' } = call
    if (typeof text !== 'string') throw wrong(type, field, 'must be a string', text, 'a string')
  }
  if (type === 'page' && call.traits !== undefined && call.properties !== undefined) {
    throw new TypeError('page: `traits` is another name of `properties`. Got both. Pass one of them.')
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
  if (!isText(call[field])) throw wrong(type, field, TEXT, call[field], 'a string of at least one character')
}

/** The other spelling, which a delivered message has, may be there too: empty, or the same id. */
function requireOneId(call: Fields, spaced: string, plain: string): void {
  requireText('alias', call, plain)
  if ([undefined, null, '', call[plain]].includes(call[spaced] as string)) return
  throw new TypeError(
    `alias: \`${spaced}\` must equal \`${plain}\`, its other spelling. Got two different values. Pass \`${plain}\` alone.`,
  )
}

function requireActor(type: CallType, call: Fields): void {
  const { userId = null, anonymousId = null } = call
  if (userId !== null) requireText(type, call, 'userId')
  if (anonymousId !== null) requireText(type, call, 'anonymousId')
  if (userId === null && anonymousId === null) {
    throw wrong(type, 'userId', `${TEXT}, or \`anonymousId\` in its place`, call.userId, 'one of the two')
  }
}

function requireObject(type: CallType, field: string, value: unknown): void {
  if (!isPlain(value)) throw wrong(type, field, 'must be a plain object, not of a class', value, 'an object literal')
  if (hasToJson(value)) throw wrong(type, field, 'must not have a toJSON method', value, 'plain data')
}

/** Whether JSON holds all of it: not a list, and no object of a class, whose contents JSON may leave out (a Map). */
function isPlain(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false
  const prototype = Object.getPrototypeOf(value)
  // The plain objects of another realm have another Object.prototype.
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

function hasToJson(value: Fields): boolean {
  return typeof value.toJSON === 'function'
}

function write(type: CallType, call: Record<string, unknown>): string {
  const { context } = call
  try {
    call.context = context === undefined ? LIBRARY_ONLY : { library: LIBRARY, ...(context as Fields) }
    return JSON.stringify(type === 'page' ? renameTraits(call) : call)
  } catch (cause) {
    const field = Object.keys(call).find((name) => !isWritable(call[name]))
    const culprit = field === undefined ? 'the call' : `\`${field}\``
    throw new TypeError(
      `${type}: ${culprit} cannot be written as JSON. Got an error: ${describeError(cause)}. Pass plain data.`,
      {
        cause,
      },
    )
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

function wrong(type: CallType, field: string, rule: string, value: unknown, advice: string): TypeError {
  return new TypeError(`${type}: \`${field}\` ${rule}. Got ${kindOf(value)}. Pass ${advice}.`)
}

function tooLarge(type: CallType, bytes: number): HooklineError {
  return new HooklineError(
    'call_too_large',
    `${type}: the call must be at most ${CALL_LIMIT} bytes of JSON. Got ${bytes} bytes. Pass fewer or shorter fields.`,
  )
}

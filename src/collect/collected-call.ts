/** Makes the message of one call: measures, checks and completes it. */

import { hash } from 'node:crypto'
import { compose } from '../protocol/compose.ts'
import { HooklineError, type HooklineErrorCode, invalidField, kindOf } from '../protocol/error.ts'
import { CALL_LIMIT } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { isObject, type Json, normalise } from '../protocol/parse.ts'
import { showText } from '../protocol/show-text.ts'
import { toTimestamp } from '../protocol/timestamp.ts'
import { ALIAS_IDS, CALL_TYPES, type CallType, isCallType } from '../protocol/type-table.ts'
import type { Submission } from '../send/destination-types.ts'
import type { Route } from './routes.ts'

export interface Arrival {
  readonly route: Route
  readonly source: string
  readonly now: number
  readonly receivedAt: string
  readonly ip: string | undefined
  readonly shared: Json
}

/**
 * Makes the message of a call ("Go client library", Message types), and a key that stays the same when a client sends
 * the call again: a digest of all fields that a client does not change then, because a `messageId` alone can be
 * guessed.
 */
export function readCall(value: unknown, arrival: Arrival): Submission {
  if (!isObject(value)) {
    throw new HooklineError(
      'call_invalid',
      `A call must be a JSON object. Got ${kindOf(value)}. Send each call as an object.`,
    )
  }
  const call = withShared(value, arrival.shared)
  const { whole, lasting } = serialise(call)
  requireSize(whole)
  const type = readType(call, arrival.route)
  const message = toMessage(type, call, arrival)
  const { source } = arrival
  if (!call.messageId) return { message, source }
  return { message, source, key: hash('sha256', `${JSON.stringify([source, type])}${lasting}`) }
}

/**
 * The JSON of a call, and of what lasts of it: analytics.js changes `sentAt` when it sends a call again, and `_metadata`, which
 * counts the attempts.
 */
function serialise(call: Json): { readonly whole: string; readonly lasting: string } {
  const { sentAt, _metadata } = call
  try {
    const whole = JSON.stringify(call)
    const isShallow = whole.length <= 2 * NESTING_LIMIT // Each level takes two brackets.
    if (isShallow || !nestsTooDeep(call)) {
      if (sentAt === undefined && _metadata === undefined) return { whole, lasting: whole }
      return { whole, lasting: JSON.stringify({ ...call, sentAt: undefined, _metadata: undefined }) }
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error // The stack ended before the JSON did.
  }
  throw new HooklineError(
    'call_invalid',
    `A call must nest at most ${NESTING_LIMIT} levels deep. Got more levels. Send fewer levels.`,
  )
}

/** Measures only what may be too large: a character of a string is three bytes of UTF-8 at most. */
function requireSize(json: string): void {
  const bytes = 3 * json.length <= CALL_LIMIT ? 0 : Buffer.byteLength(json)
  if (bytes <= CALL_LIMIT) return
  throw new HooklineError(
    'call_too_large',
    `A call must be at most ${CALL_LIMIT} bytes of JSON, what its batch adds included. Got ${bytes} bytes. Send fewer or shorter fields.`,
  )
}

function withShared(call: Json, { context, integrations }: Json): Json {
  const complete = { ...call }
  if (context !== undefined) complete.context ??= context
  if (integrations !== undefined) complete.integrations ??= integrations
  normalise(complete)
  return complete
}

/** A call of a batch needs a type. On the path of one type a call may leave it out, and may not have another. */
function readType({ type }: Json, route: Route): CallType {
  if (route !== 'batch') {
    if (type === undefined || type === route) return route
    throw invalidField(
      'call_invalid',
      'type',
      `must be '${route}' on this path`,
      kindOf(type),
      `'${route}', or leave it out`,
    )
  }
  if (isCallType(type)) return type
  const code = type === undefined ? 'call_invalid' : 'message_type_unknown'
  throw invalidField(code, 'type', `must be one of ${CALL_TYPES.join(', ')}`, showText(type), 'one of them')
}

function toMessage(type: CallType, call: Json, { now, receivedAt, ip, shared }: Arrival): Message {
  if (!isObject(call.integrations ?? {})) throw wrongKind('integrations', 'an object', call)
  for (const id of ['messageId', 'anonymousId'] as const) {
    if (typeof (call[id] ?? '') !== 'string') throw wrongKind(id, 'a string', call)
  }
  const { sentAt = shared.sentAt } = call
  const sent = toTimestamp(sentAt)
  const fields = withoutTransport(call)
  return compose(
    type,
    {
      ...(type === 'page' ? withProperties(fields) : fields),
      timestamp: call.timestamp ?? receivedAt,
      context: withAddress(call.context ?? {}, ip),
      ...(sent !== undefined && { sentAt: sent }),
      receivedAt,
    },
    now,
  )
}

/** Leaves out what is about the request. Hot path: few calls have it, and a copy without fields is slow. */
function withoutTransport(call: Json): Json {
  if (call.writeKey === undefined && call.sentAt === undefined) return call
  const { writeKey: _, sentAt: __, ...fields } = call
  return fields
}

/** The traits of a page arrive as its properties ("Outbound event delivery", Delivered message fields). */
function withProperties(page: Json): Json {
  const { traits, properties = {}, ...rest } = page
  if (!isObject(traits) || !isObject(properties)) return page
  return { ...rest, properties: { ...traits, ...properties } }
}

function withAddress(context: unknown, ip: string | undefined): unknown {
  if (!isObject(context) || ip === undefined) return context
  return { ...context, ip: context.ip ?? ip }
}

const CLIENT_NAMES: ReadonlyMap<string, string> = new Map(ALIAS_IDS)

export interface CallFault {
  readonly code: HooklineErrorCode
  readonly path: string | undefined
  readonly detail: string
}

export function readFault({ code, path, message }: HooklineError): CallFault {
  return {
    code: code === 'message_invalid' ? 'call_invalid' : code,
    path: path === undefined ? undefined : (CLIENT_NAMES.get(path) ?? path),
    detail: message,
  }
}

function wrongKind(field: string, kind: string, call: Json): HooklineError {
  const advice = `${kind}, or leave it out`
  return invalidField('call_invalid', field, `must be ${kind} when present`, kindOf(call[field]), advice)
}

/**
 * Deepest nesting of a call: far more than calls have, and far less than the stack holds. JSON.parse takes any depth, and
 * JSON.stringify overflows after some thousands; a message that overflowed when it is sent would be retried in vain.
 */
export const NESTING_LIMIT = 500

export function nestsTooDeep(value: object, levels: number = NESTING_LIMIT): boolean {
  if (levels === 0) return true
  for (const child of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof child === 'object' && child !== null && nestsTooDeep(child, levels - 1)) return true
  }
  return false
}

/** Makes the message of one call: measures, checks and completes it. */

import { hash } from 'node:crypto'
import type { Submission } from '../destination/api.ts'
import { compose } from '../message/compose.ts'
import { HooklineError, type HooklineErrorCode, invalidField, kindOf } from '../message/error.ts'
import { isObject, type Json } from '../message/json.ts'
import { CALL_LIMIT } from '../message/limits.ts'
import type { Message } from '../message/message.ts'
import { toTimestamp } from '../message/timestamp.ts'
import { ALIAS_IDS, CALL_OBJECTS, CALL_TYPES, type CallType, isCallType } from '../message/type-table.ts'
import type { Route } from './routes.ts'

/** The facts that the calls of one request share. */
export interface Arrival {
  readonly route: Route
  /** Name of the source. */
  readonly source: string
  /** Time of arrival, in milliseconds since the epoch. */
  readonly now: number
  /** The address of the client, if known. */
  readonly ip: string | undefined
  /** The fields of a batch, for calls that lack them. */
  readonly shared: Json
}

/**
 * Makes the message of a call ("Go client library", Message types), and a key that stays the same when a client sends the
 * call again: a digest of all fields that a client does not change then, because a `messageId` alone can be guessed.
 *
 * @throws HooklineError that {@link readFault} reads.
 */
export function readCall(value: unknown, arrival: Arrival): Submission {
  if (!isObject(value)) {
    throw new HooklineError(
      'call_invalid',
      `A call must be a JSON object. Got ${kindOf(value)}. Send each call as an object.`,
    )
  }
  if (nestsTooDeep(value)) {
    throw new HooklineError(
      'call_invalid',
      `A call must nest at most ${NESTING_LIMIT} levels deep. Got more levels. Send fewer levels.`,
    )
  }
  const call = withShared(value, arrival.shared)
  const text = JSON.stringify(call)
  const bytes = Buffer.byteLength(text)
  if (bytes > CALL_LIMIT) {
    throw new HooklineError(
      'call_too_large',
      `A call must be at most ${CALL_LIMIT} bytes of JSON, what its batch adds included. Got ${bytes} bytes. Send fewer or shorter fields.`,
    )
  }
  const type = readType(call, arrival.route)
  const message = toMessage(type, call, arrival)
  if (!call.messageId) return { message }
  return { message, key: hash('sha256', `${JSON.stringify([arrival.source, type])}${lastingText(call, text)}`) }
}

/** Leaves out what analytics.js changes when it sends a call again: `sentAt`, and `_metadata`, which counts the attempts. */
function lastingText(call: Json, text: string): string {
  if (call.sentAt === undefined && call._metadata === undefined) return text
  const { sentAt: _sentAt, _metadata, ...lasting } = call
  return JSON.stringify(lasting)
}

function withShared(call: Json, { context, integrations }: Json): Json {
  const complete = { ...call }
  if (context !== undefined) complete.context ??= context
  if (integrations !== undefined) complete.integrations ??= integrations
  for (const field of CALL_OBJECTS) {
    // Null in their place is the same as nothing.
    if (complete[field] === null) Reflect.deleteProperty(complete, field)
  }
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
  throw invalidField(code, 'type', `must be one of ${CALL_TYPES.join(', ')}`, kindOf(type), 'one of them')
}

function toMessage(type: CallType, call: Json, { now, ip, shared }: Arrival): Message {
  if (!isObject(call.integrations ?? {})) throw wrongKind('integrations', 'an object', call)
  for (const id of ['messageId', 'anonymousId'] as const) {
    if (typeof (call[id] ?? '') !== 'string') throw wrongKind(id, 'a string', call)
  }
  const { writeKey: _, sentAt = shared.sentAt, ...fields } = call
  const sent = toTimestamp(sentAt)
  return compose(
    type,
    {
      ...(type === 'page' ? withProperties(fields) : fields),
      timestamp: call.timestamp ?? undefined,
      context: withAddress(call.context ?? {}, ip),
      ...(sent !== undefined && { sentAt: sent }),
      receivedAt: new Date(now).toISOString(),
    },
    now,
  )
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

/** A client's call spells the ids of an alias without spaces. */
const CLIENT_NAMES: ReadonlyMap<string, string> = new Map(ALIAS_IDS)

/** What is wrong with a call, by the names that its client knows. */
export interface CallFault {
  readonly code: HooklineErrorCode
  readonly path?: string
  readonly detail: string
}

/** Reads the fault of a call from the error of {@link readCall}. */
export function readFault({ code, path, message }: HooklineError): CallFault {
  return {
    code: code === 'message_invalid' ? 'call_invalid' : code,
    ...(path !== undefined && { path: CLIENT_NAMES.get(path) ?? path }),
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

/** Checks whether values lie in more than 500 objects or lists inside one another. */
export function nestsTooDeep(value: unknown, levels: number = NESTING_LIMIT): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  return Object.values(value).some((child) => nestsTooDeep(child, levels - 1))
}

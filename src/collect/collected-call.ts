/** Turns one call into a message: measures, checks and completes the call. */

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
  /** `context`, `integrations` and `sentAt` of the batch, for each call that lacks the field. Empty for a single call. */
  readonly batch: Json
}

/**
 * Turns a call into a message ("Go client library", Message types), with a key that stays the same when a client sends the call again. The
 * key is a digest of all fields that the client leaves unchanged, because a `messageId` alone can be guessed.
 */
export function readCall(value: unknown, arrival: Arrival): Submission {
  if (!isObject(value)) {
    throw new HooklineError(
      'call_invalid',
      `A call must be a JSON object. Got ${kindOf(value)}. Send each call as an object.`,
    )
  }
  const call = withBatchFields(value, arrival.batch)
  normalise(call)
  const { json, stableJson } = writeJson(call)
  requireSize(json)
  const type = readType(call, arrival.route)
  const message = toMessage(type, call, arrival)
  const { source } = arrival
  if (!call.messageId) return { message, source }
  return { message, source, key: hash('sha256', `${JSON.stringify([source, type])}${stableJson}`) }
}

/**
 * Writes a call as JSON twice: once whole, and once without the fields that analytics.js changes when it sends the call again. These fields
 * are `sentAt` and `_metadata`, which counts the attempts.
 */
function writeJson(call: Json): { readonly json: string; readonly stableJson: string } {
  const { sentAt, _metadata } = call
  try {
    const json = JSON.stringify(call)
    const isShallow = json.length <= 2 * NESTING_LIMIT // Each level takes two brackets.
    if (isShallow || !nestsTooDeep(call)) {
      if (sentAt === undefined && _metadata === undefined) return { json, stableJson: json }
      return { json, stableJson: JSON.stringify({ ...call, sentAt: undefined, _metadata: undefined }) }
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error // A RangeError means that the call is nested deeper than the stack allows.
  }
  throw new HooklineError(
    'call_invalid',
    `A call must be nested at most ${NESTING_LIMIT} levels deep. Send a call with fewer levels.`,
  )
}

/**
 * Measures only a call that may be too large, because this is a hot path. Each UTF-16 code unit of a string takes at most three bytes in
 * UTF-8.
 */
function requireSize(json: string): void {
  if (3 * json.length <= CALL_LIMIT) return
  const bytes = Buffer.byteLength(json)
  if (bytes <= CALL_LIMIT) return
  throw new HooklineError(
    'call_too_large',
    `A call must be at most ${CALL_LIMIT} bytes of JSON, including the fields of its batch. Got ${bytes} bytes. Send fewer or shorter fields.`,
  )
}

/** Copies a call. A call without `context` or `integrations` gets those of its batch. */
function withBatchFields(call: Json, batch: Json): Json {
  const complete = { ...call }
  if (batch.context !== undefined) complete.context ??= batch.context
  if (batch.integrations !== undefined) complete.integrations ??= batch.integrations
  return complete
}

/** Reads the type of a call. In a batch, each call needs a type; on the path of one type, a call may leave it out. */
function readType({ type }: Json, route: Route): CallType {
  if (route !== 'batch') {
    if (type === undefined || type === route) return route
    const advice = `'${route}', or omit it`
    throw invalidField('call_invalid', 'type', `must be '${route}' on this path`, showText(type), advice)
  }
  if (isCallType(type)) return type
  const code = type === undefined ? 'call_invalid' : 'message_type_unknown'
  throw invalidField(code, 'type', `must be one of ${CALL_TYPES.join(', ')}`, showText(type), 'one of them')
}

function toMessage(type: CallType, call: Json, { now, receivedAt, ip, batch }: Arrival): Message {
  if (!isObject(call.integrations ?? {})) throw wrongKind('integrations', 'an object', call)
  for (const id of ['messageId', 'anonymousId'] as const) {
    if (typeof (call[id] ?? '') !== 'string') throw wrongKind(id, 'a string', call)
  }
  const fields = withoutRequestFields(call)
  const message: Record<string, unknown> = {
    ...(type === 'page' ? withProperties(fields) : fields),
    timestamp: call.timestamp ?? receivedAt,
    context: withAddress(call.context ?? {}, ip),
  }
  const sentAt = toTimestamp(call.sentAt === undefined ? batch.sentAt : call.sentAt)
  if (sentAt !== undefined) message.sentAt = sentAt
  message.receivedAt = receivedAt
  return compose(type, message, now)
}

/**
 * Returns a call without the fields that describe its request. Copies only a call that has such fields, because few calls do, and copying
 * is slow.
 */
function withoutRequestFields(call: Json): Json {
  if (call.writeKey === undefined && call.sentAt === undefined) return call
  const { writeKey: _, sentAt: __, ...fields } = call
  return fields
}

/** Renames the `traits` of a page call to `properties` ("Outbound event delivery", Delivered message fields). */
function withProperties(page: Json): Json {
  const { traits, properties = {}, ...rest } = page
  if (!isObject(traits) || !isObject(properties)) return page
  return { ...rest, properties: { ...traits, ...properties } }
}

function withAddress(context: unknown, ip: string | undefined): unknown {
  if (!isObject(context) || ip === undefined) return context
  return { ...context, ip: context.ip ?? ip }
}

/** The spelling of ids in calls, keyed by their spelling in messages. */
const CLIENT_NAMES: ReadonlyMap<string, string> = new Map(ALIAS_IDS)

export interface CallFault {
  readonly code: HooklineErrorCode
  readonly path: string | undefined
  readonly detail: string
}

/** Describes an error of a message in terms of the call: with `call_invalid` for `message_invalid`, and with the client's field names. */
export function readFault({ code, path, message }: HooklineError): CallFault {
  return {
    code: code === 'message_invalid' ? 'call_invalid' : code,
    path: path === undefined ? undefined : (CLIENT_NAMES.get(path) ?? path),
    detail: message,
  }
}

function wrongKind(field: string, kind: string, call: Json): HooklineError {
  const advice = `${kind}, or omit it`
  return invalidField('call_invalid', field, `must be ${kind} when present`, kindOf(call[field]), advice)
}

/**
 * The maximum nesting depth of a call: far more than real calls have, and far less than the stack allows. JSON.parse
 * reads any depth, but JSON.stringify overflows the stack after a few thousand levels, so a deeper message would fail
 * at every attempt to send it.
 */
export const NESTING_LIMIT = 500

export function nestsTooDeep(value: object, levels: number = NESTING_LIMIT): boolean {
  if (levels === 0) return true
  for (const child of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof child === 'object' && child !== null && nestsTooDeep(child, levels - 1)) return true
  }
  return false
}

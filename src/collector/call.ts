/** One call on its way to become a message: measured, checked, completed. */

import { hash } from 'node:crypto'
import { compose } from '../protocol/compose.ts'
import { HooklineError } from '../protocol/error.ts'
import { isObject, type Json } from '../protocol/json.ts'
import { CALL_LIMIT } from '../protocol/limits.ts'
import type { Message } from '../protocol/message.ts'
import { toTimestamp } from '../protocol/timestamp.ts'
import type { Submission } from '../sender/api.ts'
import { nestsTooDeep } from './nesting.ts'
import { CALL_TYPES, type CallType, isCallType, type Route } from './routes.ts'

/** What the calls of one request have in common. */
export interface Arrival {
  readonly route: Route
  /** Name of the source. */
  readonly source: string
  /** When it arrived, in milliseconds since the epoch. */
  readonly now: number
  /** The address of the client, where it is known. */
  readonly ip: string | undefined
  /** The fields of a batch, for those of its calls that have none of their own. */
  readonly shared: Json
}

/**
 * Makes the message of a call ("Go client library", Message types), and a key under which a client that sends the call
 * again sends the same one: a digest of all that it does not change then, because a `messageId` alone can be guessed.
 *
 * @throws HooklineError `call_invalid`, `call_too_large` or `message_type_unknown`.
 */
export function readCall(value: unknown, arrival: Arrival): Submission {
  if (!isObject(value)) throw new HooklineError('call_invalid', 'The call is not a JSON object.')
  if (nestsTooDeep(value)) throw new HooklineError('call_invalid', 'The call is nested too deep.')
  const call = withShared(value, arrival.shared)
  const text = JSON.stringify(call)
  if (Buffer.byteLength(text) > CALL_LIMIT) {
    throw new HooklineError('call_too_large', `The call is larger than the limit of ${CALL_LIMIT} bytes.`)
  }
  const type = readType(call, arrival.route)
  const message = toMessage(type, call, arrival)
  if (!call.messageId) return { message }
  return { message, key: hash('sha256', `${JSON.stringify([arrival.source, type])}${lastingText(call, text)}`) }
}

/** When analytics.js sends a call again, it stamps `sentAt` anew and counts the attempt in `_metadata`. */
function lastingText(call: Json, text: string): string {
  if (call.sentAt === undefined && call._metadata === undefined) return text
  const { sentAt: _sentAt, _metadata, ...lasting } = call
  return JSON.stringify(lasting)
}

function withShared(call: Json, { context, integrations }: Json): Json {
  const complete = { ...call }
  if (context !== undefined) complete.context ??= context
  if (integrations !== undefined) complete.integrations ??= integrations
  for (const field of OBJECTS) {
    if (complete[field] === null) Reflect.deleteProperty(complete, field)
  }
  return complete
}

/** Null in their place is the same as nothing. */
const OBJECTS = ['properties', 'traits', 'context', 'integrations'] as const

/** A batch's call says its type; a call with a path of its own need not, and may not say another. */
function readType({ type }: Json, route: Route): CallType {
  if (route !== 'batch') {
    if (type === undefined || type === route) return route
    throw invalid('type', `is not ${route}, which is what this path takes`)
  }
  if (type === undefined) throw invalid('type', `is missing; it is one of ${CALL_TYPES}`)
  if (isCallType(type)) return type
  throw new HooklineError('message_type_unknown', `type is not one of ${CALL_TYPES}.`, { path: 'type' })
}

function toMessage(type: CallType, call: Json, { now, ip, shared }: Arrival): Message {
  if (!isObject(call.integrations ?? {})) throw invalid('integrations', 'must be an object when given')
  for (const id of ['messageId', 'anonymousId'] as const) {
    if (typeof (call[id] ?? '') !== 'string') throw invalid(id, 'must be a string when given')
  }
  const { writeKey: _, sentAt = shared.sentAt, ...fields } = call
  const sent = toTimestamp(sentAt)
  try {
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
  } catch (error) {
    throw error instanceof HooklineError ? asCallError(error) : error
  }
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

/** Clients know nothing of the names with spaces that the ids of an alias have in a message. */
const CLIENT_NAMES: ReadonlyMap<string | undefined, string> = new Map([
  ['Previous ID', 'previousId'],
  ['User ID', 'userId'],
])

function asCallError({ message, path = '' }: HooklineError): HooklineError {
  const name = CLIENT_NAMES.get(path) ?? path
  return new HooklineError('call_invalid', message, { path: name })
}

function invalid(path: string, fault: string): HooklineError {
  return new HooklineError('call_invalid', `${path} ${fault}.`, { path })
}

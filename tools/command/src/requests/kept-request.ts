/** Defines what `hookline listen` stores about a request, and reads the headers of a request and the fields of its message. */

import { parse } from 'hookline'
import { isObject, tryParse } from '../../../json.ts'

/** A stored request without the bodies. */
export interface KeptSummary {
  /** The id, which has 12 hexadecimal digits. */
  readonly id: string
  /** The time of arrival, in milliseconds since the epoch. */
  readonly receivedAt: number
  readonly method: string
  readonly target: string
  /** The names and values of the headers, alternating, as they were received. */
  readonly headers: readonly string[]
  /** The number of bytes of the body that arrived. If the body exceeds the limit, fewer bytes are stored. */
  readonly size: number
  readonly isComplete: boolean
  readonly message: MessageFields
  /** Whether the signature matches; `unchecked` when no secret was passed. */
  readonly verification: 'verified' | 'mismatched' | 'unchecked'
  /** The reason why the signature does not match, in a few sentences. */
  readonly reason?: string | undefined
  readonly answer: KeptAnswer
}

/** A stored request with the exact bytes of its body, and the beginning of the body of its answer. */
export interface KeptRequest extends KeptSummary {
  readonly body: Uint8Array
  readonly answerBody: Uint8Array
}

/** The parts of a message that a line of output shows. The fields are untrusted: escape them. */
export interface MessageFields {
  readonly type?: string | undefined
  readonly name?: string | undefined
  readonly user?: string | undefined
  /** The reason why the body is not a message; undefined for a message, a batch and an empty body. */
  readonly fault?: string | undefined
}

export interface KeptAnswer {
  /** The status; undefined when the request was not answered. */
  readonly status?: number | undefined
  /** The names and values of the headers, alternating. */
  readonly headers: readonly string[]
  readonly by: 'listen' | 'script' | 'forward'
  readonly durationMs: number
  /** The reason why the request got no normal answer. The text may quote a server: escape it. */
  readonly note?: string | undefined
}

export const BODY_LIMIT = 5_000_000

/** The number of digits of an id that a line of output shows. */
export const SHOWN_DIGITS = 8

export function pairsOf(headers: readonly string[]): (readonly [name: string, value: string])[] {
  return headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ''] as const] : []))
}

/** Returns the value of a header by its lowercase name; undefined when it is missing. Joins repeated headers. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  const values = pairsOf(headers).flatMap(([given, value]) => (given.toLowerCase() === name ? [value] : []))
  return values.length === 0 ? undefined : values.join(', ')
}

const MAX_FIELD_LENGTH = 200

/** Reads the fields of the message in a body. Never throws. */
export function readFields(body: Uint8Array): MessageFields {
  if (body.length === 0) return {}
  const json = tryParse(body)
  if (Array.isArray(json)) return { type: `batch of ${json.length}` }
  const { type, event, groupId, name, userId, 'User ID': aliased, anonymousId } = isObject(json) ? json : {}
  const user = userId || aliased || anonymousId
  const fields = { type: text(type), name: text(event ?? groupId ?? name), user: text(user) }
  try {
    parse(body)
    return fields
  } catch (error) {
    const [rule = '', found = ''] = (error as Error).message.split(/(?<=\.) /)
    return { ...fields, fault: `${rule} ${found}` }
  }
}

function text(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, MAX_FIELD_LENGTH)
}

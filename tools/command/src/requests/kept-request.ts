/** A request as `hookline listen` keeps it, and what is read of its headers and its body. */

import { parse } from 'hookline'
import { isObject, tryParse } from '../../../json.ts'

/** All but the bytes. */
export interface KeptSummary {
  /** 12 hexadecimal digits. */
  readonly id: string
  /** In milliseconds since the epoch. */
  readonly receivedAt: number
  readonly method: string
  readonly target: string
  /** Names and values in turns, as they came. */
  readonly headers: readonly string[]
  /** How many bytes of the body came. More than are kept when it was over the limit. */
  readonly size: number
  readonly isComplete: boolean
  readonly message: MessageFields
  /** `unchecked`: no secret was passed. */
  readonly verification: 'verified' | 'mismatched' | 'unchecked'
  /** Why it does not match, in a sentence or two. */
  readonly reason?: string | undefined
  readonly answer: KeptAnswer
}

/** A request with its exact bytes, and the beginning of the body that it was answered with. */
export interface KeptRequest extends KeptSummary {
  readonly body: Uint8Array
  readonly answerBody: Uint8Array
}

/** What a line shows of a message. Strangers wrote it: escape it. */
export interface MessageFields {
  readonly type?: string | undefined
  readonly name?: string | undefined
  readonly user?: string | undefined
  /** Why the body is no message; undefined for a message, and for no body. */
  readonly fault?: string | undefined
}

export interface KeptAnswer {
  /** Undefined when it was not answered. */
  readonly status?: number | undefined
  /** Names and values in turns. */
  readonly headers: readonly string[]
  readonly by: 'listen' | 'script' | 'forward'
  readonly durationMs: number
  /** Why there was no answer, or no normal one. It may quote a server: escape it. */
  readonly note?: string | undefined
}

export const BODY_LIMIT = 5_000_000

/** How many digits of an id a line shows. */
export const SHOWN_DIGITS = 8

export function pairsOf(headers: readonly string[]): (readonly [name: string, value: string])[] {
  return headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? ''] as const] : []))
}

/** The value of a header, by its name in lower case: the values of repeated ones together; undefined when it is missing. */
export function headerOf(headers: readonly string[], name: string): string | undefined {
  const values = pairsOf(headers).flatMap(([given, value]) => (given.toLowerCase() === name ? [value] : []))
  return values.length === 0 ? undefined : values.join(', ')
}

const MAX_FIELD_LENGTH = 200

/** Reads the fields. Never throws. */
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

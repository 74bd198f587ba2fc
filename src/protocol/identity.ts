/** Whom a message is about: finds what is stored of a user. */

import { kindOf } from './error.ts'
import { isObject, readId } from './parse.ts'

const IDS = ['userId', 'anonymousId', 'previousId', 'User ID', 'Previous ID'] as const

/**
 * Returns a function that says whether a body is a message about a user: one of its ids is among these. A `delete` is
 * not, because it carries the request to forget the user; neither is what is no JSON.
 */
export function matchUser(ids: string | readonly string[]): (body: Uint8Array) => boolean {
  const wanted = readUsers(ids)
  return (body) => usersIn(body).some((id) => wanted.has(id))
}

/** @throws TypeError for what is no id of a user and no list of them. */
export function readUsers(ids: string | readonly string[]): ReadonlySet<string> {
  const list: readonly unknown[] = typeof ids === 'string' ? [ids] : Array.isArray(ids) ? ids : [ids]
  const wrong = list.length === 0 ? [ids] : list.filter((id) => typeof id !== 'string' || id === '')
  if (wrong.length === 0) return new Set(list as readonly string[])
  const found = kindOf(wrong[0])
  throw new TypeError(`\`ids\` must be an id of a user or a list of ids. Got ${found}. Pass one, for example 'user-1'.`)
}

/** Lists the ids of the users whom a body is about. */
export function usersIn(body: Uint8Array): string[] {
  try {
    return usersOf(JSON.parse(decoder.decode(body)))
  } catch {
    return []
  }
}

/** Lists the ids of the users whom parsed JSON is about: one message, a list of messages, or a batch of calls. */
export function usersOf(value: unknown): string[] {
  const calls: unknown = isObject(value) ? value.batch : value
  return [value, ...(Array.isArray(calls) ? calls : [])].flatMap(idsOf)
}

function idsOf(message: unknown): string[] {
  if (!isObject(message) || message.type === 'delete') return []
  return IDS.map((field) => readId(message[field])).filter((id) => id !== undefined)
}

/** As {@link parse} reads a body: without a byte order mark. */
const decoder = new TextDecoder()

/** Determines which users a message is about, to find what is stored about a user. */

import { kindOf } from './error.ts'
import { isObject, readId } from './parse.ts'

const IDS = ['userId', 'anonymousId', 'previousId', 'User ID', 'Previous ID'] as const

/**
 * Returns a function that says whether a body is a message about one of these users. A `delete` message never counts, because it carries
 * the request to forget the user. Bytes that are not JSON do not count, either.
 */
export function matchUser(ids: string | readonly string[]): (body: Uint8Array) => boolean {
  const wanted = readUsers(ids)
  return (body) => usersIn(body).some((id) => wanted.has(id))
}

/**
 * @throws TypeError unless `ids` is the id of a user or a list of ids.
 */
export function readUsers(ids: string | readonly string[]): ReadonlySet<string> {
  const list = [ids].flat()
  const isId = (id: unknown): boolean => typeof id === 'string' && id !== ''
  if (list.length > 0 && list.every(isId)) return new Set(list)
  const found = kindOf(list.length === 0 ? ids : list.find((id) => !isId(id)))
  throw new TypeError(
    `\`ids\` must be the id of a user or a list of ids. Got ${found}. Pass an id, for example 'user-1'.`,
  )
}

/** Lists the ids of the users whom a body is about, except for `delete` messages. Returns an empty list for bytes that are not JSON. */
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

/** Drops a byte order mark, as {@link parse} does. */
const decoder = new TextDecoder()

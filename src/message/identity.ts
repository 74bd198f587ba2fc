/** Whom a message is about: finds what is stored of a user. */

import { kindOf } from './error.ts'
import { isObject } from './json.ts'

const IDS = ['userId', 'anonymousId', 'previousId', 'User ID', 'Previous ID'] as const

/**
 * Returns a function that says whether a body is a message about a user: one of its ids is among these. A `delete` is
 * not, because it carries the request to forget the user; neither is what is no JSON.
 */
export function matchUser(ids: string | readonly string[]): (body: Uint8Array) => boolean {
  const list: readonly unknown[] = typeof ids === 'string' ? [ids] : Array.isArray(ids) ? ids : [ids]
  const wrong = list.length === 0 ? [ids] : list.filter((id) => typeof id !== 'string' || id === '')
  if (wrong.length > 0) {
    const found = kindOf(wrong[0])
    throw new TypeError(
      `\`ids\` must be an id of a user or a list of ids. Got ${found}. Pass one, for example 'user-1'.`,
    )
  }
  const wanted = new Set(list)
  const isAbout = (message: unknown): boolean =>
    isObject(message) && message.type !== 'delete' && IDS.some((field) => wanted.has(textOf(message[field])))

  return (body) => {
    try {
      const messages: unknown = JSON.parse(decoder.decode(body))
      return Array.isArray(messages) ? messages.some(isAbout) : isAbout(messages)
    } catch {
      return false
    }
  }
}

/** A number is no id of a message, but an invalid message that has one is stored, too. */
function textOf(id: unknown): unknown {
  return typeof id === 'number' ? String(id) : id
}

/** As {@link parse} reads a body: without a byte order mark. */
const decoder = new TextDecoder()

/** The messages that a check sends, written member by member, so that each byte of them is chosen. */

import { randomBytes } from 'node:crypto'
import { readJsonText, spaced, writeJson } from '../../message/explain/json-text.ts'

/** What messages look like. A serialiser that writes one again, from its default form, changes nothing in it. */
export interface Form {
  readonly type: 'track' | 'identify' | 'page' | 'group'
  /** Whether a space follows each comma and colon. */
  readonly isSpaced: boolean
  /** What it has beside or in place of the members that the specification shows. */
  changes(): Members
}

/** The JSON of the values by key; undefined leaves a key out. */
export type Members = Readonly<Record<string, string | undefined>>

/** As the specification shows them. */
export const DEFAULT_FORM: Form = { type: 'track', isSpaced: false, changes: () => ({}) }

/** No user has this id, and no two messages the same. */
export function newId(): string {
  return `hookline-check-${randomBytes(8).toString('hex')}`
}

/** JSON text. */
export function quote(text: string): string {
  return JSON.stringify(text)
}

/** Writes an object without white space, with sorted keys: what sorts them leaves it as it is. */
export function object(members: Members): string {
  const keys = Object.keys(members).filter((key) => members[key] !== undefined)
  keys.sort()
  return `{${keys.map((key) => `${quote(key)}:${members[key]}`).join(',')}}`
}

/** An object of the context that every message has but a `delete`. */
export const CONTEXT: string = object({
  device: object({ model: quote('hookline-check'), type: quote('check') }),
  ip: quote('192.0.2.1'),
})

/** Fields that no part of the specification shows, and that senders add. */
export function extras(): Members {
  const at = now()
  return {
    channel: quote('server'),
    integrations: object({ All: 'true' }),
    messageId: quote(newId()),
    originalTimestamp: at,
    receivedAt: at,
    sentAt: at,
  }
}

/** The time of a message, as JSON. */
export function now(agoMs = 0): string {
  return quote(new Date(Date.now() - agoMs).toISOString())
}

/** The members that every message has; a `delete` has neither `version` nor `context`. */
export function common({ changes }: Form, type: string): Members {
  const members = { version: '1', type: quote(type), userId: quote(newId()), timestamp: now(), context: CONTEXT }
  return { ...members, ...changes() }
}

/**
 * The members of a message.
 *
 * @param fields The JSON of its properties or traits.
 */
export function messageOf(form: Form, fields: string): Members {
  const { type } = form
  const members = common(form, type)
  if (type === 'track') return { ...members, event: quote('Hookline Check'), properties: fields }
  if (type === 'page') return { ...members, properties: fields }
  return { ...members, ...(type === 'group' ? { groupId: quote(newId()) } : {}), traits: fields }
}

/** Writes a message in the white space of the form. */
export function write(form: Form, members: Members): string {
  return arrange(form, object(members))
}

/** A plain message that says which case it is of. */
export function plainText(form: Form, id: string, changes: Members = {}): string {
  return write(form, { ...messageOf(form, object({ check: quote(id) })), ...changes })
}

/** Gives a text the white space of the form. Everything else stays as it is written. */
export function arrange({ isSpaced }: Pick<Form, 'isSpaced'>, text: string): string {
  const json = isSpaced ? readJsonText(text) : undefined
  if (json === undefined) return text
  return writeJson(json.root, json.tokens, spaced) ?? text
}

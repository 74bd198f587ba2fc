/** The messages that a check sends, written member by member, so that each byte of them is chosen; and their signed requests. */

import { randomBytes } from 'node:crypto'
import { type DeliveryMethod, sign } from 'hookline'
import { layOut } from '../../../../src/internals.ts'
import type { Json } from '../../../json.ts'
import type { RequestForm } from '../arguments.ts'

/** What messages look like. A serialiser that writes one again, from its default form, changes nothing in it. */
export interface Form {
  readonly type: 'track' | 'identify' | 'page' | 'group'
  readonly isSpaced: boolean
  /** The fields that the sender adds; undefined for a message as the specification shows it. */
  readonly fields?: Json | undefined
  changes(): Members
}

/** The JSON of the values by key; undefined leaves a key out. */
export type Members = Readonly<Record<string, string | undefined>>

export interface Base {
  readonly form: Form
  readonly secret: string
  readonly headers: Readonly<Record<string, string>>
  /** What the sender does beside its messages. */
  readonly request: RequestForm
}

export interface CaseRequest {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
  /** Whether any answer is right. */
  readonly isOpen?: boolean
  /** Whether its bytes are sent in two halves, 100 ms apart. */
  readonly isInPieces?: boolean
  readonly method?: DeliveryMethod
}

export const DEFAULT_FORM: Form = { type: 'track', isSpaced: false, changes: () => ({}) }

/** No user has this id, and no two messages the same. */
export function newId(): string {
  return `hookline-check-${randomBytes(8).toString('hex')}`
}

export function now(agoMs = 0): string {
  return quote(new Date(Date.now() - agoMs).toISOString())
}

export function quote(text: string): string {
  return JSON.stringify(text)
}

/** Writes an object without white space, with sorted keys: what sorts them leaves it as it is. */
export function object(members: Members): string {
  const keys = Object.keys(members).filter((key) => members[key] !== undefined)
  return `{${keys
    .sort()
    .map((key) => `${quote(key)}:${members[key]}`)
    .join(',')}}`
}

export function texts(members: Readonly<Record<string, string>>): string {
  return object(Object.fromEntries(Object.entries(members).map(([key, text]) => [key, quote(text)])))
}

const DEVICE = texts({ model: 'hookline-check', type: 'check' })

/** The context that every message has but a `delete`. */
export const CONTEXT: string = object({ device: DEVICE, ip: quote('192.0.2.1') })

export function screenContext(name: string): string {
  return object({
    app: texts({ build: '1', name, version: '1' }),
    device: DEVICE,
    os: texts({ name: 'hookline-check', version: '1' }),
  })
}

/** Fields that no part of the specification shows, and that senders add. */
export function extras(): Members {
  const times = { originalTimestamp: now(), receivedAt: now(), sentAt: now() }
  return { ...times, channel: quote('server'), integrations: '{"All":true}', messageId: quote(newId()) }
}

export function common({ changes, fields }: Form, type: string): Members {
  const members = { version: '1', type: quote(type), userId: quote(newId()), timestamp: now(), context: CONTEXT }
  return { ...members, ...(fields && { ...extras(), version: undefined, ...textsOf(fields) }), ...changes() }
}

function textsOf(fields: Json): Members {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, JSON.stringify(value)]))
}

export function write(form: Form, fields: string, changes: Members = {}): string {
  const { type } = form
  const own: Members = {
    ...(type === 'track' && { event: quote('Hookline Check') }),
    ...(type === 'group' && { groupId: quote(newId()) }),
    [type === 'track' || type === 'page' ? 'properties' : 'traits']: fields,
  }
  return arrange(form, object({ ...common(form, type), ...own, ...changes }))
}

export function plainText(form: Form, id: string, changes: Members = {}): string {
  return write(form, texts({ check: id }), changes)
}

/** Gives a text the white space of the form. Everything else stays as it is written. */
export function arrange({ isSpaced }: Pick<Form, 'isSpaced'>, text: string): string {
  return (isSpaced ? layOut(text, 'spaced') : undefined) ?? text
}

export function signed(
  { secret, headers, request: { signs, userAgent, proofHeader, method } }: Base,
  text: string | Buffer,
  proof: string | null = signs === 'header' ? secret : sign(text, secret),
): CaseRequest {
  const own = { 'Content-Type': 'application/json', 'User-Agent': userAgent }
  return {
    body: Buffer.from(text),
    headers: { ...headers, ...own, ...(proof !== null && { [proofHeader]: proof }) },
    method,
  }
}

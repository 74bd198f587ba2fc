/** Writes the messages and signed requests of a check. Messages are written member by member to control each byte. */

import { randomBytes } from 'node:crypto'
import { type DeliveryMethod, sign } from 'hookline'
import { layOut } from '../../../../src/internals.ts'
import type { Json } from '../../../json.ts'
import type { RequestForm } from '../arguments.ts'

/** The form of a message. Parsing a message in the default form and serialising it again changes no byte. */
export interface Form {
  readonly type: 'track' | 'identify' | 'page' | 'group'
  readonly isSpaced: boolean
  /** The fields that the sender adds; undefined for a message in the form of the specification. */
  readonly fields?: Json | undefined
  changes(): Members
}

/** The members of an object: each key with the JSON of its value. A key whose value is undefined is omitted. */
export type Members = Readonly<Record<string, string | undefined>>

export interface Base {
  readonly form: Form
  readonly secret: string
  readonly headers: Readonly<Record<string, string>>
  /** The form of the sender's requests. */
  readonly request: RequestForm
}

export interface CaseRequest {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
  /** Whether any answer counts as right. */
  readonly isOpen?: boolean
  /** Whether the body is sent in two halves, 100 ms apart. */
  readonly isInPieces?: boolean
  readonly method?: DeliveryMethod
}

export const DEFAULT_FORM: Form = { type: 'track', isSpaced: false, changes: () => ({}) }

/** Creates an id that no user has and no other message uses. */
export function newId(): string {
  return `hookline-check-${randomBytes(8).toString('hex')}`
}

export function now(agoMs = 0): string {
  return quote(new Date(Date.now() - agoMs).toISOString())
}

export function quote(text: string): string {
  return JSON.stringify(text)
}

/** Writes an object without white space and with sorted keys, so that even a serialiser that sorts keys changes nothing. */
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

/** The context of a message. A `screen` message has another context, and a `delete` message has none. */
export const CONTEXT: string = object({ device: DEVICE, ip: quote('192.0.2.1') })

export function screenContext(name: string): string {
  return object({
    app: texts({ build: '1', name, version: '1' }),
    device: DEVICE,
    os: texts({ name: 'hookline-check', version: '1' }),
  })
}

/** Returns fields that senders add although they are not in the specification. */
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

/** Adds a space after each comma and colon of the JSON if the form is spaced, and changes nothing else. */
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

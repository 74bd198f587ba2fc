/** The cases of what a message holds: its type, its ids, its fields. Each is in a message that is plain otherwise. */

import { type Draft, defineCase, type EndpointCase, signed } from './endpoint-case.ts'
import {
  CONTEXT,
  common,
  extras,
  type Form,
  type Members,
  newId,
  now,
  object,
  plainText,
  quote,
  write,
} from './message.ts'

/** A message that is correct: it must be taken. */
function taken(id: string, sends: string, section: string, advice: string, text: Text, rest: Partial<Draft> = {}) {
  const shots: Draft['shots'] = (base) => signed(base, text(base.form, id))
  return defineCase('taken', { id, sends, section, advice, shots, ...rest })
}

type Text = (form: Form, id: string) => string

/** The first of all cases: what is sent in it is found by `base.ts`. */
export const PLAIN: EndpointCase = taken(
  'plain-message',
  'a signed message',
  'Authentication 3',
  'Every other case changes one thing in a message like this.',
  (form, id) => plainText(form, id),
)

const TYPE_ADVICE = 'The sender sends each of the seven types: answer 2xx to one that is of no use to you.'

function typed(type: string, fields: (id: string) => Members): EndpointCase {
  const section = `Delivered message fields: ${type}`
  const text: Text = (form, id) => write(form, { ...common(form, type), ...fields(id) })
  return taken(`type-${type}`, `a message of the type ${type}`, section, TYPE_ADVICE, text)
}

const check = (id: string): Members => ({ check: quote(id) })

/** A message of each type. */
export const TYPE_CASES: readonly EndpointCase[] = [
  typed('page', (id) => ({
    properties: object({
      path: quote(id),
      referrer: quote('urn:hookline-check:referrer'),
      title: quote('Hookline Check'),
      url: quote('urn:hookline-check:page'),
    }),
  })),
  typed('screen', (id) => ({
    context: object({
      app: object({ build: quote('1'), name: quote(id), version: quote('1') }),
      device: object({ model: quote('hookline-check'), type: quote('check') }),
      os: object({ name: quote('hookline-check'), version: quote('1') }),
    }),
    name: quote('Hookline Check'),
  })),
  typed('identify', (id) => ({ traits: object({ ...check(id), logins: '5' }) })),
  typed('track', (id) => ({ event: quote('Hookline Check'), properties: object({ ...check(id), total: '12' }) })),
  aliasCase(),
  typed('group', (id) => ({ groupId: quote(newId()), traits: object({ ...check(id), 'Employee Count': '12' }) })),
  typed('delete', () => ({ version: undefined, context: undefined })),
]

/** An alias has its new id twice: under its own name, and as the `userId` that every message has. */
function aliasCase(): EndpointCase {
  return typed('alias', () => {
    const userId = quote(newId())
    return { 'Previous ID': quote(newId()), 'User ID': userId, userId }
  })
}

const FIELDS: readonly EndpointCase[] = [
  taken(
    'context-object',
    'a message with a context object',
    'What the service does 6',
    'Every message but a delete has a context: take it, whatever it holds.',
    (form, id) => plainText(form, id, { context: CONTEXT }),
  ),
  taken(
    'unknown-fields',
    'a message with fields that the specification does not show: messageId, integrations, receivedAt and others',
    'Delivered message fields',
    'Senders add fields, and new ones over time: ignore those that you do not know.',
    (form, id) => plainText(form, id, { ...extras(), hookline_check: '[1,true,null]' }),
  ),
  taken(
    'anonymous-id',
    'a message with an anonymousId and without a userId',
    'Delivered message fields: userId',
    'A visitor who has not logged in has no userId: take the anonymousId in its place.',
    (form, id) => plainText(form, id, { anonymousId: quote(newId()), userId: undefined }),
  ),
  taken(
    'user-id-null',
    'a message with an anonymousId and the userId null',
    'Delivered message fields: userId',
    'Some senders write null for the userId of a visitor who has not logged in: treat it as absent.',
    (form, id) => plainText(form, id, { anonymousId: quote(newId()), userId: 'null' }),
    { severity: 'warn' },
  ),
  taken(
    'audience-traits',
    'an identify with the boolean traits of audiences, true and false',
    'Audience and computed-trait delivery 2',
    'Audiences arrive as boolean traits: take them beside text and numbers.',
    (form, id) => {
      const traits = object({ ...check(id), hookline_check_joined: 'true', hookline_check_left: 'false' })
      return write(form, { ...common(form, 'identify'), traits })
    },
  ),
  taken(
    'old-timestamp',
    'a message whose timestamp is four hours old',
    'Limits: Retry window for 5xx responses',
    'A message is retried for four hours with the same bytes: do not refuse one for its age.',
    (form, id) => plainText(form, id, { timestamp: now(4 * 60 * 60_000) }),
  ),
]

/** The seven types, then single fields. */
export const MESSAGE_CASES: readonly EndpointCase[] = [...TYPE_CASES, ...FIELDS]

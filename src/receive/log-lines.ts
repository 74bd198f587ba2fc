/** Writes the log lines about a delivery: the error, which delivery it is about, and what happens next. */

import { KEEP_THE_BYTES } from '../host/body.ts'
import type { Line } from '../kit/log.ts'
import { shownUrl } from '../kit/shown.ts'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Delivery, HandlerNames } from './delivery.ts'
import { explainError, isUnusable } from './failure.ts'

type LineOf = Required<Pick<Line, 'text' | 'fields'>>

/** The delivery that an error is about, and its message. */
export interface Subject {
  readonly delivery: Delivery
  /** The message; undefined when it could not be parsed. */
  readonly message: Pick<ReceivedMessage, 'type'> | undefined
}

/**
 * Describes an error in a line of the log. Names the delivery only if it is authentic or was parsed, because a stranger may have chosen
 * everything in any other delivery.
 */
export function describe(
  error: HooklineError,
  { delivery, message: subject }: Subject,
  next = '',
  fields: object = {},
  path?: string,
): LineOf {
  const code = path === undefined ? error.code : `${error.code} at ${path}`
  const message = explainError(error).replace(/[^.]$/, '$&.')
  const type = subject?.type
  if (!delivery.verified && type === undefined) return { text: `${code}: ${message} ${next}`, fields }
  const { id } = delivery
  const of = type === undefined ? '' : ` (${type})`
  return { text: `${code} in delivery ${id}${of}: ${message} ${next}`, fields: { deliveryId: id, type, ...fields } }
}

/** Returns, for example, `Failed: crm. Done: mail. `; an empty string if the message has no named handlers. */
export function describeHandlers(handlers: HandlerNames | undefined): string {
  if (handlers === undefined) return ''
  const { done, failed } = handlers
  return sentence('Failed', failed) + sentence('Done', done)
}

function sentence(how: string, names: readonly string[]): string {
  const all = names.map((name) => name || 'handlers without a name').join(', ')
  return all === '' ? '' : `${how}: ${all}. `
}

const MAX_PATH = 100

export function describeRequest(
  error: HooklineError,
  subject: Subject,
  path: string | undefined,
  onRejected: unknown,
): LineOf {
  const isLost = subject.delivery.verified && isUnusable(error) && onRejected === undefined
  const shown = path === undefined ? undefined : shownUrl(path).slice(0, MAX_PATH)
  return describe(error, subject, isLost ? LOST : '', shown === undefined ? {} : { path: shown }, shown)
}

const LOST = 'The sender will not send the message again. To keep such messages, pass `onRejected` or an `inbox`.'

export const MISMATCH =
  'X-Signature does not match the body. Check that the sender has the same secret, that no parser or proxy changes the body, and that the message is for this source, not for another one. If all of this is the case, the request is forged.'

export const RESERIALISED = `A body parser read the body before Hookline, so signatures are checked over JSON.stringify(body). Messages whose JSON was written differently are refused. ${KEEP_THE_BYTES}`

export const NO_HANDLER =
  'A message was answered 200, but no handler is registered. Call `on` before the server listens.'

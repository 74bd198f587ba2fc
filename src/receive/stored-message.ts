/** Reads the stored messages and dead letters of an inbox into the form in which the application gets them. */

import type { EndpointHeaders } from '../host/endpoint.ts'
import { STATUS } from '../protocol/error-codes.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import { parseReceived } from '../protocol/parse.ts'
import { sealedError, sealedWith } from '../store/encryption.ts'
import type { LetterFilter } from '../store/letters.ts'
import type { DeadLetter } from '../store/queue-types.ts'
import type { Delivery, HandlerNames } from './delivery.ts'
import { readEnvelope } from './envelope.ts'
import { type DeadLetterReason, readRetryState, type StoredError } from './inbox-state.ts'

/** A message as the inbox stores it. */
export interface StoredMessage {
  /** The id of the message in the queue. */
  readonly id: string
  /** The exact bytes of the body; for an unreadable message, all bytes that are stored. `JSON.stringify` writes the bytes as text. */
  readonly bytes: Uint8Array
  /** The headers of the request, with names in lower case. Headers whose names suggest that they hold a secret are not stored. */
  readonly headers: EndpointHeaders
  /** The source of the message, if the receiver has several sources; undefined otherwise. */
  readonly source: string | undefined
  /** The part of the request that was verified when the message arrived: see {@link Delivery.verified}. */
  readonly verified: Delivery['verified']
  /** When the request arrived; undefined when the message is unreadable. */
  readonly receivedAt: Date | undefined
  /** The replay that made this copy; undefined for a message that came from a sender. */
  readonly replay: Delivery['replay']
}

/** Selects the dead letters of an inbox that match every given field. */
export interface InboxLetterFilter extends LetterFilter<DeadLetterReason> {
  /** Selects the dead letters for which the handler with this name failed in the last attempt. */
  readonly handler?: string
}

/** A dead letter: a message that the inbox does not retry until it is redriven. */
export interface DeadLetterMessage extends StoredMessage {
  /** The message as it was before any schema was applied; undefined when the bytes are not a valid message. */
  readonly message: ReceivedMessage | undefined
  readonly reason: DeadLetterReason
  /** The error of the last attempt, or the reason why there was no attempt. */
  readonly error: StoredError
  /** The names of the handlers that are done, and of those that failed in the last attempt; undefined without named handlers. */
  readonly handlers?: HandlerNames
  /** How many attempts failed. */
  readonly attempts: number
  /** When the message became a dead letter. */
  readonly failedAt: Date
}

export function readStored({ id, body }: { readonly id: string; readonly body: Uint8Array }): StoredMessage {
  try {
    const { bytes, headers, source, verified, receivedAt, replay } = readEnvelope(body)
    return withText({ id, bytes, headers, source, verified, receivedAt: new Date(receivedAt), replay })
  } catch {
    const unknown = { source: undefined, receivedAt: undefined, replay: undefined }
    return withText({ id, bytes: body, headers: {}, verified: false, ...unknown })
  }
}

/** Makes `JSON.stringify` write the bytes as text, not as one number for each byte. The added `toJSON` is not enumerable. */
export function withText<Stored extends { readonly bytes: Uint8Array }>(stored: Stored): Stored {
  const toJSON = (): object => ({ ...stored, bytes: new TextDecoder().decode(stored.bytes) })
  return Object.defineProperty(stored, 'toJSON', { value: toJSON })
}

export function readDeadLetter(letter: DeadLetter): DeadLetterMessage {
  const stored = readStored(letter)
  const { attempts, error, handlers } = readRetryState(letter.retryState)
  const isReadable = stored.receivedAt !== undefined
  const message = isReadable ? tryParse(stored.bytes, !INVALID.includes(error?.code)) : undefined
  const { failedAt } = letter
  const named = handlers && { handlers }
  // A spread of `stored` would lose its `toJSON`, which is not enumerable.
  return Object.assign(stored, { message, ...explain(letter, error), ...named, attempts, failedAt })
}

export function reasonOf(letter: DeadLetter): DeadLetterReason {
  return explain(letter, readRetryState(letter.retryState).error).reason
}

/** Returns whether a named handler failed in the last attempt. */
export function failedIn({ retryState }: DeadLetter, handler: string): boolean {
  return readRetryState(retryState).handlers?.failed.includes(handler) === true
}

/** Returns the reason and the error of a dead letter. A job that the queue could not read has a reason, but no stored error. */
function explain(
  { reason, retryState }: DeadLetter,
  error: StoredError | undefined,
): Pick<DeadLetterMessage, 'reason' | 'error'> {
  const known = ([error?.code, 'crashed', 'unreadable'] as const).find((each) => each === reason)
  if (error !== undefined && known !== undefined) return { reason: known, error }
  const keyId = sealedWith(retryState)
  if (keyId !== undefined && isReason(reason)) {
    const { code, message } = sealedError(keyId)
    return { reason, error: { code, message, causes: [] } }
  }
  return { reason: 'unreadable', error: { code: 'internal', message: reason, causes: [] } }
}

function isReason(reason: string): reason is DeadLetterReason {
  return reason in STATUS || reason === 'crashed'
}

/** The error codes of bodies that a receiver without `custom` refused. Such bodies are not custom messages. */
const INVALID: readonly (string | undefined)[] = ['body_not_json', 'message_invalid', 'message_type_unknown']

export function tryParse(bytes: Uint8Array, takesCustom = true): ReceivedMessage | undefined {
  try {
    return parseReceived(bytes, takesCustom)
  } catch {
    return undefined
  }
}

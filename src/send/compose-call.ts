/** Turns a call into a checked and complete message, and writes the bytes of the message. */

import { invalidOption, kindOf, requireOneOf, requireText } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { distinctTime } from '../kit/distinct-time.ts'
import { compose, serialise } from '../protocol/compose.ts'
import { describeError, HooklineError } from '../protocol/error.ts'
import { idOfKey } from '../protocol/id.ts'
import type { Message, MessageType } from '../protocol/message.ts'
import { MESSAGE_TYPES } from '../protocol/type-table.ts'
import type { Submission } from './destination-types.ts'
import { writeStored } from './stored-submission.ts'

export interface Composed {
  readonly message: Message
  readonly bytes: Uint8Array
  /** When the message was composed, in milliseconds since the epoch. */
  readonly at: number
  /** The id of the message's job. Default: a new id. */
  readonly id?: string | undefined
  /** The bytes that the queue stores. Default: `bytes`. */
  readonly stored?: Uint8Array
}

const EXAMPLE_KEY = 'order-1'
const EXAMPLE_SOURCE = 'shop'

/**
 * Composes the message of a call. A call without a timestamp gets the current time of the clock. For a `delete`, this time is made unique
 * among the deletions of the user. Otherwise, two deletions could have the same bytes, and a receiver would treat them as one message.
 */
export function composeCall(type: MessageType, call: object, clock: Clock): Composed {
  if (typeof call !== 'object' || call === null) {
    const advice = "Pass the fields of the message, for example { userId: 'user-1' }."
    throw invalidOption(`${type}: call`, 'must be an object', kindOf(call), advice)
  }
  try {
    const at = clock.now()
    const { userId, timestamp }: Partial<Record<'userId' | 'timestamp', unknown>> = call
    const needsOwnTime = type === 'delete' && timestamp === undefined && typeof userId === 'string'
    const message = compose(type, call, needsOwnTime ? distinctTime(clock, userId) : at)
    return { message, bytes: serialise(message), at }
  } catch (error) {
    throw new TypeError(explainFault(type, error))
  }
}

export function composeMessage(message: Message, clock: Clock): Composed {
  return composeCall(requireOneOf('message.type', message?.type, MESSAGE_TYPES), message, clock)
}

export function composeSubmission({ message, key, source }: Submission, clock: Clock): Composed {
  if (key !== undefined) requireText('key', key, EXAMPLE_KEY)
  if (source !== undefined) requireText('source', source, EXAMPLE_SOURCE)
  const composed = composeMessage(message, clock)
  return { ...composed, id: key && idOfKey(key), stored: writeStored(composed.bytes, source) }
}

function explainFault(type: MessageType, error: unknown): string {
  if (error instanceof HooklineError) return `${type}: ${error.message}`
  const [firstLine] = describeError(error).split('\n')
  return `${type}: the call cannot be written as JSON: ${firstLine}. Pass plain data without cycles or BigInt values.`
}

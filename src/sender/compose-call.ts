/** The message of a call, checked and completed, and its bytes. */

import { compose, serialise } from '../message/compose.ts'
import { HooklineError } from '../message/error.ts'
import type { Message, MessageType } from '../message/message.ts'
import { MESSAGE_TYPES } from '../message/type-table.ts'
import { invalidOption, kindOf, requireOneOf } from '../options/checks.ts'

/** A message and the bytes that are signed and sent for it. */
export interface Composed {
  readonly message: Message
  readonly bytes: Buffer
}

/**
 * Composes the message of a call.
 *
 * @param now Milliseconds since the epoch, for a call without a timestamp.
 * @throws TypeError that names the method and the field.
 */
export function composeCall(type: MessageType, call: object, now: number): Composed {
  if (typeof call !== 'object' || call === null) {
    const advice = "Pass fields, for example { userId: 'u1' }."
    throw invalidOption(`${type}: call`, 'must be an object', kindOf(call), advice)
  }
  try {
    const message = compose(type, call, now)
    return { message, bytes: serialise(message) }
  } catch (error) {
    throw new TypeError(describeFault(type, error))
  }
}

/**
 * Completes a whole message.
 *
 * @param now Milliseconds since the epoch, for a message without a timestamp.
 * @throws TypeError that names the field.
 */
export function composeMessage(message: Message, now: number): Composed {
  return composeCall(requireOneOf('message.type', message?.type, MESSAGE_TYPES), message, now)
}

function describeFault(type: MessageType, error: unknown): string {
  if (error instanceof HooklineError) return `${type}: ${error.message}`
  const [found] = (error instanceof Error ? error.message : kindOf(error)).split('\n')
  return `${type}: the call cannot be written as JSON. Got ${found}. Pass plain data without cycles and BigInt values.`
}

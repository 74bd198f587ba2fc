/** The seven methods of a sender and of a destination, and the message that each makes. */

import { compose, serialise } from '../protocol/compose.ts'
import { HooklineError } from '../protocol/error.ts'
import { isMessageType, type Message, type MessageType, TYPE_NAMES } from '../protocol/message.ts'
import type { CallMethods } from './api.ts'

/** A message, and the bytes that stand for it everywhere. */
export interface Composed {
  readonly message: Message
  readonly bytes: Buffer
}

/** One method for each type. */
export function toMethods<Result>(send: (type: MessageType, call: object) => Promise<Result>): CallMethods<Result> {
  return {
    page: (call) => send('page', call),
    screen: (call) => send('screen', call),
    identify: (call) => send('identify', call),
    track: (call) => send('track', call),
    alias: (call) => send('alias', call),
    group: (call) => send('group', call),
    delete: (call) => send('delete', call),
  }
}

/**
 * The message of a call.
 *
 * @throws TypeError that names the method and the field.
 */
export function composeCall(type: MessageType, call: object, now: number): Composed {
  if (typeof call !== 'object' || call === null) throw new TypeError(`${type}: give it an object of fields.`)
  try {
    const message = compose(type, call, now)
    return { message, bytes: serialise(message) }
  } catch (error) {
    const fault = error instanceof Error ? error.message : 'unknown'
    throw new TypeError(`${type}: ${error instanceof HooklineError ? fault : `cannot be written as JSON: ${fault}`}`)
  }
}

/**
 * A whole message, completed.
 *
 * @throws TypeError that names the field.
 */
export function composeMessage(message: Message, now: number): Composed {
  if (!isMessageType(message?.type)) throw new TypeError(`send: type must be one of ${TYPE_NAMES}.`)
  return composeCall(message.type, message, now)
}

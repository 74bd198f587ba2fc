/** The seven message types in one table, from which parsing, composing, methods, client checks and collector routes are derived. */

import type { MessageType, ReceivedMessage } from './message.ts'

export interface TypeRule {
  readonly ids: 'actor' | 'user' | 'alias'
  readonly requiredText?: 'event' | 'groupId'
  /** Fields that must contain text if a client's call has them. */
  readonly optionalText?: readonly string[]
}

/**
 * A message type that a client may record. `delete` is excluded, because otherwise, anyone who knows a public write key
 * could delete a user.
 */
export type CallType = Exclude<MessageType, 'delete'>

/** The rule of each type ("Outbound event delivery", Delivered message fields; "Go client library", Message types). */
export const TYPES: Readonly<Record<MessageType, TypeRule>> = {
  page: { ids: 'actor', optionalText: ['name', 'category'] },
  screen: { ids: 'actor', optionalText: ['name', 'category'] },
  identify: { ids: 'actor' },
  track: { ids: 'actor', requiredText: 'event' },
  alias: { ids: 'alias' },
  group: { ids: 'actor', requiredText: 'groupId' },
  delete: { ids: 'user' },
}

/** Fields that must contain an object in a message of any type that has them. */
export const MESSAGE_OBJECTS = ['properties', 'traits', 'context'] as const

/** Fields that must contain an object in a call of any type that has them. */
export const CALL_OBJECTS = [...MESSAGE_OBJECTS, 'integrations'] as const

/** The ids of an alias, each in the spelling of the specification and in the spelling of calls. */
export const ALIAS_IDS = [
  ['Previous ID', 'previousId'],
  ['User ID', 'userId'],
] as const

/** The seven types of messages. */
export const MESSAGE_TYPES: readonly MessageType[] = Object.keys(TYPES) as MessageType[]

/** The types of messages that a receiver can handle. */
export const RECEIVED_TYPES: readonly ReceivedMessage['type'][] = [...MESSAGE_TYPES, 'custom']

export const CALL_TYPES: readonly CallType[] = MESSAGE_TYPES.filter(isCallType)

export const TYPE_NAMES: string = MESSAGE_TYPES.join(', ')

export function isMessageType(type: unknown): type is MessageType {
  return typeof type === 'string' && Object.hasOwn(TYPES, type)
}

export function isCallType(type: unknown): type is CallType {
  return isMessageType(type) && type !== 'delete'
}

/** Creates an object with a method for each type. The method calls `send` with its type. */
export function createMethods<Type extends MessageType, Result, Options extends unknown[] = []>(
  types: readonly Type[],
  send: (type: Type, call: object, ...options: Options) => Result,
): Readonly<Record<Type, (call: object, ...options: Options) => Result>> {
  const methods = types.map((type) => [type, (call: object, ...options: Options) => send(type, call, ...options)])
  return Object.fromEntries(methods)
}

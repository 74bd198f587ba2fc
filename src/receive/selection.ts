/** The arguments of on() and off(): which messages a handler is for, and how it is registered. */

import {
  invalidOption,
  requireFunction,
  requireHandlerName,
  requireOneOf,
  requireOptions,
  requireText,
  show,
} from '../kit/checks.ts'
import type { Message, ReceivedMessage } from '../protocol/message.ts'
import { RECEIVED_TYPES } from '../protocol/type-table.ts'
import type { Delivery } from './delivery.ts'

/** Your code. It may return a promise, which is awaited; its value is ignored. */
export type Handler<M = Message> = (message: M, delivery: Delivery) => unknown

/** How a handler is registered. */
export interface HandlerOptions {
  /**
   * Names the handler, once in a receiver: 1 to 64 of the characters `a-z0-9._-`, beginning with a letter or a digit. With an inbox, a
   * named handler that succeeded does not run again when the message is retried or redriven. Handlers without a name are one unit:
   * all of them run again until all have succeeded in one attempt.
   */
  readonly name?: string
}

export function readSelection(call: 'on' | 'off', given: readonly unknown[], takesCustom: boolean) {
  const [types, event] = given
  const by = given.length < 3 || typeof event === 'function' ? 'type' : 'event'
  const [handler, options, ...more] = given.slice(by === 'type' ? 1 : 2) as [Handler<ReceivedMessage>, HandlerOptions?]
  const keys = new Set(Array.isArray(types) && types.length > 0 ? types : [types])
  for (const type of keys) requireOneOf(`${call}: type`, type, ANY_TYPE)
  if (keys.has('custom') && !takesCustom) {
    const advice = 'Pass `custom: true` to createReceiver.'
    throw invalidOption(`${call}: type`, 'needs a receiver that takes custom messages', "'custom'", advice)
  }
  if (by === 'event' && (typeof options === 'function' || more.length > 0)) {
    const found = `${given.length} arguments`
    throw invalidOption(call, 'takes one event', found, `Call \`${call}\` once for each event.`)
  }
  requireFunction(`${call}: handler`, handler)
  const name = readHandlerName(call, options)
  if (by === 'type') return { by, keys, handler, name } as const
  if (types !== 'track') {
    const advice = `Pass 'track', or leave the event out.`
    throw invalidOption(`${call}: type`, `must be 'track' when an event is passed`, show(types), advice)
  }
  requireText(`${call}: event`, event, 'Order Completed')
  return { by, keys: new Set([event]), handler, name } as const
}

/** Reads the name of a handler. Returns an empty text for a handler without a name. */
export function readHandlerName(call: string, options: HandlerOptions = {}): string {
  requireOptions(call, options, ['name'])
  const { name } = options
  if (name !== undefined) requireHandlerName(`${call}: name`, name)
  return name ?? ''
}

const ANY_TYPE: readonly unknown[] = [...RECEIVED_TYPES, '*']

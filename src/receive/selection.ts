/** Reads the arguments of `on`, `onBatch` and `off`: the messages that a handler is for, the handler, and its options. */

import {
  invalidOption,
  requireFunction,
  requireHandlerName,
  requireInteger,
  requireOneOf,
  requireOptions,
  requireText,
  show,
} from '../kit/checks.ts'
import type { Message, ReceivedMessage } from '../protocol/message.ts'
import { RECEIVED_TYPES } from '../protocol/type-table.ts'
import type { Delivery } from './delivery.ts'

/** A function that handles a message. It may return a promise, which is awaited. The value that it returns is ignored. */
export type Handler<M = Message> = (message: M, delivery: Delivery) => unknown

/** The options of a handler. */
export interface HandlerOptions {
  /**
   * The name of the handler, unique in its receiver: 1 to 64 of the characters `a-z0-9._-`, beginning with a letter or a digit. With an
   * inbox, a named handler that succeeded does not run again when the message is retried or redriven. Handlers without a name form one
   * unit: all of them run again until all of them have succeeded in the same attempt.
   */
  readonly name?: string
  /**
   * The maximum number of messages per second that the handler gets in each process, on average. Further messages wait
   * in the inbox until the handler may get them. Messages that had to wait may start together, up to this number at
   * once. The wait does not count as an attempt, and does not delay other handlers. Needs a `name`, and an inbox that
   * is not `transactional`. Default: no limit.
   */
  readonly maxPerSecond?: number
}

export function readSelection(call: 'on' | 'off' | 'onBatch', given: readonly unknown[], takesCustom: boolean) {
  const [types, event] = given
  const by = given.length < 3 || typeof event === 'function' ? 'type' : 'event'
  const [handler, options, ...more] = given.slice(by === 'type' ? 1 : 2) as [Handler<ReceivedMessage>, HandlerOptions?]
  const keys = new Set(Array.isArray(types) && types.length > 0 ? types : [types])
  for (const type of keys) requireOneOf(`${call}: type`, type, ANY_TYPE)
  if (keys.has('custom') && !takesCustom) {
    const advice = 'Pass `custom: true` to createReceiver.'
    throw invalidOption(
      `${call}: type`,
      "cannot be 'custom' unless the receiver accepts custom messages",
      undefined,
      advice,
    )
  }
  if (by === 'event' && (typeof options === 'function' || more.length > 0)) {
    const found = `${given.length} arguments`
    throw invalidOption(call, 'accepts only one event', found, `Call \`${call}\` once for each event.`)
  }
  requireFunction(`${call}: handler`, handler)
  // `readHandlerOptions` does not know the options of a batch handler.
  const how = call === 'onBatch' ? { name: '', maxPerSecond: undefined } : readHandlerOptions(call, options)
  if (by === 'type') return { by, keys, handler, options, ...how } as const
  if (types !== 'track') {
    const advice = `Pass 'track', or omit the event.`
    throw invalidOption(`${call}: type`, `must be 'track' when an event is passed`, show(types), advice)
  }
  requireText(`${call}: event`, event, 'Order Completed')
  return { by, keys: new Set([event]), handler, options, ...how } as const
}

/**
 * Returns whether one message can match both handlers. Each handler is given in the form of `HandlerRun.on`, such as `*` or `track Cart`.
 */
export function canShareMessage(one: string, other: string): boolean {
  const meet = (first: string, second: string): boolean =>
    first === second || first === '*' || (first === 'track' && second.startsWith('track '))
  return waysOf(one).some((first) => waysOf(other).some((second) => meet(first, second) || meet(second, first)))
}

function waysOf(on: string): readonly string[] {
  if (on.startsWith('entered ')) return ['identify', 'track Audience Entered']
  return on.startsWith('exited ') ? ['identify', 'track Audience Exited'] : [on]
}

/** Reads the options of a handler. For a handler without a name, `name` is an empty string. */
export function readHandlerOptions(call: string, options: HandlerOptions = {}) {
  requireOptions(call, options, ['name', 'maxPerSecond'])
  const { name, maxPerSecond } = options
  if (name !== undefined) requireHandlerName(`${call}: name`, name)
  if (maxPerSecond !== undefined) {
    requireInteger(`${call}: maxPerSecond`, maxPerSecond, 1)
    if (name === undefined) {
      throw invalidOption(
        `${call}: maxPerSecond`,
        'needs a `name`',
        undefined,
        "Pass a name as well, for example 'crm'.",
      )
    }
  }
  return { name: name ?? '', maxPerSecond }
}

const ANY_TYPE: readonly unknown[] = [...RECEIVED_TYPES, '*']

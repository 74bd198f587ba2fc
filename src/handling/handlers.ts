/** The registry behind on(): handlers by type, event name, audience and for every message, and the dispatch to them. */

import { memberships, traitName } from '../message/audience.ts'
import type { Message } from '../message/message.ts'
import { invalidOption, requireFunction, requireOptions, show } from '../options/checks.ts'
import type { OpenDelivery } from './open-delivery.ts'
import { runAll } from './runs.ts'
import { type Handler, type HandlerOptions, readSelection, readUnverified } from './selection.ts'

/** The handlers of an audience: pass one or both. */
export interface AudienceHandlers<M = Message> {
  readonly entered?: Handler<M>
  readonly exited?: Handler<M>
}

/** The registered handlers. */
export interface Handlers {
  /** How many are registered. */
  readonly size: number
  /** Whether one of them takes unverified messages. */
  readonly takeUnverified: boolean
  /** Takes the arguments of `on`. */
  add(selection: readonly unknown[]): void
  /** Takes the arguments of `off`. */
  remove(selection: readonly unknown[]): void
  addAudience(name: string, handlers: AudienceHandlers, options?: HandlerOptions): void
  /** Refuses handlers for what never had one: from now on the inbox completes its messages. */
  start(): void
  /**
   * Calls every handler that matches, all at once. `wire` is the message before its schema, which may drop the trait of an
   * audience.
   *
   * @returns undefined when no handler returned a promise, else a promise that resolves when all are done.
   * @throws HooklineError (or a rejection) `handler_failed` after all have run; its cause is one AggregateError.
   */
  dispatch(message: Message, wire: Message, delivery: OpenDelivery): Promise<void> | undefined
}

const SIDES = ['entered', 'exited'] as const

/** A handler as it was registered. */
interface Registered {
  /** For what: `track`, `track Order Completed`, `*`, `entered high_value_users`. */
  readonly on: string
  readonly handler: Handler
  /** Whether it takes unverified messages. */
  readonly isUnverified: boolean
  /** How many audiences were registered before it. */
  readonly order: number
}

/** Creates an empty registry. */
export function createHandlers(): Handlers {
  const registry = new Map<string, Registered[]>()
  let audiences = 0
  let takeUnverified = false
  let isStarted = false
  let size = 0

  return {
    get size() {
      return size
    },
    get takeUnverified() {
      return takeUnverified
    },

    add(selection) {
      const { keys, handler, isUnverified } = readSelection('on', selection)
      const added = Array.from(keys, (on) => ({ on, handler, isUnverified, order: 0 }))
      register('on', added)
      size += keys.size
    },

    remove(selection) {
      const { keys, handler } = readSelection('off', selection)
      for (const key of keys) {
        const before = of(key)
        const after = before.filter((other) => other.handler !== handler)
        if (before.length > 0) registry.set(key, after)
        size -= before.length - after.length
      }
    },

    addAudience(name, handlers, options = {}) {
      const trait = traitName(name)
      requireOptions('onAudience', handlers, ['entered', 'exited'])
      const sides = SIDES.filter((side) => handlers[side] !== undefined)
      if (sides.length === 0) {
        throw invalidOption('onAudience: options', 'must hold `entered` or `exited`', 'neither', 'Pass a function.')
      }
      for (const side of sides) requireFunction(`onAudience: ${side}`, handlers[side])
      const isUnverified = readUnverified('onAudience', options)
      const order = audiences++
      const toRegistered = (side: (typeof SIDES)[number]): Registered => ({
        on: `${side} ${trait}`,
        handler: handlers[side] as Handler,
        isUnverified,
        order,
      })
      register('onAudience', sides.map(toRegistered))
      size++
    },

    start() {
      isStarted = true
      for (const [key, { length }] of registry) if (length === 0) registry.delete(key) // Removed before.
    },

    dispatch(message, wire, delivery) {
      // Collected before the first call: a handler may change the message and the registry.
      const matching = [...of(message.type)]
      if (wire.type === 'track') matching.push(...of(`track ${wire.event}`))
      if (audiences > 0) matching.push(...ofAudiences(wire))
      matching.push(...of('*'))
      const taking = delivery.isUncovered ? matching.filter(({ isUnverified }) => isUnverified) : matching
      return runAll(taking, message, delivery)
    },
  }

  function of(key: string): readonly Registered[] {
    return registry.get(key) ?? NONE
  }

  /** The handlers of the audiences that a message reports about. The message is read, not the audiences: those can be many. */
  function ofAudiences(message: Message): Registered[] {
    const found = memberships(message).flatMap(([trait, isMember]) => of(`${isMember ? 'entered' : 'exited'} ${trait}`))
    return found.sort((one, other) => one.order - other.order)
  }

  /** Adds handlers, unless one is the first for its messages and the inbox has completed such messages already. */
  function register(call: string, added: readonly Registered[]): void {
    for (const { on } of added) if (isStarted && !registry.has(on)) throw tooLate(call, on)
    for (const each of added) {
      const list = registry.get(each.on)
      if (list === undefined) registry.set(each.on, [each])
      else list.push(each) // In place: a copy for each would make many handlers of one key quadratic.
      takeUnverified ||= each.isUnverified
    }
  }
}

const NONE: readonly Registered[] = []

function tooLate(call: string, on: string): TypeError {
  const rule = 'must come before `start()` for messages that have no handler yet'
  const advice = `Move \`${call}\` before \`start()\`: the inbox completes messages that no handler matches.`
  return invalidOption(call, rule, `the first handler for ${show(on)} after it`, advice)
}

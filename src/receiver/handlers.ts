/** The registry behind on(): handlers by type, by event name, by audience and for all, and the dispatch to them. */

import { membership, traitName } from '../protocol/audience.ts'
import { HooklineError } from '../protocol/error.ts'
import { isMessageType, type Message, TYPE_NAMES } from '../protocol/message.ts'
import { isThenable } from '../protocol/thenable.ts'
import type { Delivery } from './delivery.ts'

/** Your code. It may return a promise; what it returns or resolves to is not looked at. */
export type Handler<M = Message> = (message: M, delivery: Delivery) => unknown

/** What to do when a user enters or leaves an audience; give one or both. */
export interface AudienceHandlers<M = Message> {
  readonly entered?: Handler<M>
  readonly exited?: Handler<M>
}

/** The registered handlers. */
export interface Handlers {
  /** Takes the arguments of `on`. */
  add(selection: readonly unknown[]): void
  /** Takes the arguments of `off`. */
  remove(selection: readonly unknown[]): void
  addAudience(name: string, handlers: AudienceHandlers): void
  /**
   * Calls every handler that matches, all at once. `wire` is the message before a schema shaped it: a schema may drop
   * the trait of an audience.
   *
   * @returns undefined when all are done, else a promise of it.
   * @throws HooklineError (or a rejection) `handler_failed` after all have run; its cause is one AggregateError.
   */
  dispatch(message: Message, wire: Message, delivery: Delivery): Promise<void> | undefined
}

/** Makes an empty registry. */
export function createHandlers(): Handlers {
  const byType = new Map<string, readonly Handler[]>()
  const byEvent = new Map<string, readonly Handler[]>()
  const audiences: (AudienceHandlers & { readonly trait: string })[] = []

  return {
    add(selection) {
      const { registry, keys, handler } = readSelection(selection)
      for (const key of keys) registry.set(key, [...(registry.get(key) ?? []), handler])
    },

    remove(selection) {
      const { registry, keys, handler } = readSelection(selection)
      for (const key of keys)
        registry.set(
          key,
          (registry.get(key) ?? []).filter((other) => other !== handler),
        )
    },

    addAudience(name, handlers) {
      if (typeof name !== 'string') throw new TypeError('onAudience: the first argument is the name of the audience.')
      const given = [handlers?.entered, handlers?.exited].filter((handler) => handler !== undefined)
      if (given.length === 0 || given.some((handler) => typeof handler !== 'function')) {
        throw new TypeError('onAudience: give a function as entered, as exited, or both.')
      }
      audiences.push({ ...handlers, trait: traitName(name) })
    },

    dispatch(message, wire, delivery) {
      // All of them first: a handler may change the message and the registry.
      const matching = [...(byType.get(message.type) ?? NONE)]
      if (wire.type === 'track') matching.push(...(byEvent.get(wire.event) ?? NONE))
      for (const { trait, entered, exited } of audiences) {
        const isMember = membership(wire, trait)
        if (isMember === true && entered !== undefined) matching.push(entered)
        if (isMember === false && exited !== undefined) matching.push(exited)
      }
      matching.push(...(byType.get('*') ?? NONE))
      return callAll(matching, message, delivery)
    },
  }

  function readSelection(selection: readonly unknown[]) {
    const [types, event] = selection
    const handler = selection.at(-1) as Handler
    if (typeof handler !== 'function' || selection.length < 2) throw misuse()
    if (selection.length > 2) {
      if (types !== 'track' || typeof event !== 'string' || event === '') throw misuse()
      return { registry: byEvent, keys: new Set([event]), handler }
    }
    const keys = new Set(Array.isArray(types) ? types : [types])
    if (keys.size === 0) throw misuse()
    for (const type of keys) if (type !== '*' && !isMessageType(type)) throw misuse()
    return { registry: byType, keys, handler }
  }
}

function misuse(): TypeError {
  return new TypeError(
    "on, off: call them as on(type, handler), on([type, …], handler), on('*', handler) or on('track', event, handler); " +
      `handler is a function, type is one of ${TYPE_NAMES}.`,
  )
}

const NONE: readonly Handler[] = []

/** Starts all of them, then waits for all of them. */
function callAll(handlers: readonly Handler[], message: Message, delivery: Delivery): Promise<void> | undefined {
  const failures: unknown[] = []
  const pending: Promise<unknown>[] = []
  const fail = (failure: unknown): void => {
    failures.push(failure)
  }
  for (const handler of handlers) {
    try {
      const result = handler(message, delivery)
      if (isThenable(result)) pending.push(Promise.resolve(result).catch(fail))
    } catch (failure) {
      fail(failure)
    }
  }
  const throwIfAnyFailed = (): undefined => {
    if (failures.length === 0) return
    const cause = new AggregateError(failures, 'handlers failed')
    throw new HooklineError('handler_failed', `${failures.length} of ${handlers.length} handlers failed.`, { cause })
  }
  return pending.length === 0 ? throwIfAnyFailed() : Promise.all(pending).then(throwIfAnyFailed)
}

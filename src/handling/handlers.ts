/** The registry behind on(): handlers by type, event name, audience and for every message, and the dispatch to them. */

import { membership, traitName } from '../message/audience.ts'
import { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { isMessageType, TYPE_NAMES } from '../message/type-table.ts'
import { isThenable } from '../options/callbacks.ts'
import { invalidOption, requireFunction, show } from '../options/checks.ts'
import type { Delivery } from './delivery.ts'

/** Your code. It may return a promise, which is awaited; its value is ignored. */
export type Handler<M = Message> = (message: M, delivery: Delivery) => unknown

/** The handlers of an audience: pass one or both. */
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
   * Calls every handler that matches, all at once. `wire` is the message before its schema, which may drop the trait of an
   * audience.
   *
   * @returns undefined when no handler returned a promise, else a promise that resolves when all are done.
   * @throws HooklineError (or a rejection) `handler_failed` after all have run; its cause is one AggregateError.
   */
  dispatch(message: Message, wire: Message, delivery: Delivery): Promise<void> | undefined
}

/** Creates an empty registry. */
export function createHandlers(): Handlers {
  const byType = new Map<string, readonly Handler[]>()
  const byEvent = new Map<string, readonly Handler[]>()
  const audiences: (AudienceHandlers & { readonly trait: string })[] = []

  return {
    add(selection) {
      const { registry, keys, handler } = readSelection(selection)
      for (const key of keys) registry.set(key, [...(registry.get(key) ?? NONE), handler])
    },

    remove(selection) {
      const { registry, keys, handler } = readSelection(selection)
      for (const key of keys) {
        registry.set(
          key,
          (registry.get(key) ?? NONE).filter((other) => other !== handler),
        )
      }
    },

    addAudience(name, handlers) {
      const trait = traitName(name)
      const { entered, exited } = handlers ?? {}
      if (entered === undefined && exited === undefined) {
        throw invalidOption('onAudience: handlers', 'must hold `entered` or `exited`', 'neither', 'Pass a function.')
      }
      if (entered !== undefined) requireFunction('entered', entered)
      if (exited !== undefined) requireFunction('exited', exited)
      audiences.push({ ...handlers, trait })
    },

    dispatch(message, wire, delivery) {
      // Collected before the first call: a handler may change the message and the registry.
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
    if (typeof handler !== 'function' || selection.length < 2) throw misuse(selection)
    if (selection.length > 2) {
      if (types !== 'track' || typeof event !== 'string' || event === '') throw misuse(selection)
      return { registry: byEvent, keys: new Set([event]), handler }
    }
    const keys = new Set(Array.isArray(types) ? types : [types])
    if (keys.size === 0) throw misuse(selection)
    for (const type of keys) if (type !== '*' && !isMessageType(type)) throw misuse(selection)
    return { registry: byType, keys, handler }
  }
}

function misuse(selection: readonly unknown[]): TypeError {
  const found = selection.map(show).join(', ')
  return new TypeError(
    "`on` and `off` take (type, handler), ([type, …], handler), ('*', handler) or ('track', event, handler). " +
      `Got (${found}). Pass a function as the handler and one of ${TYPE_NAMES} as the type.`,
  )
}

const NONE: readonly Handler[] = []

/** Starts all handlers, then waits for all. */
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
    const message = `Every handler must succeed. Got ${failures.length} of ${handlers.length} that failed. See \`cause\`.`
    throw new HooklineError('handler_failed', message, { cause })
  }
  return pending.length === 0 ? throwIfAnyFailed() : Promise.all(pending).then(throwIfAnyFailed)
}

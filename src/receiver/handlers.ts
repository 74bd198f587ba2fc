/** The registry behind on(): handlers by type, by event name, by audience and for all, and the dispatch to them. */

import { membership, traitName } from '../protocol/audience.ts'
import { HooklineError } from '../protocol/error.ts'
import { isMessageType, type Message, TYPE_NAMES } from '../protocol/message.ts'
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
  const audiences: { readonly trait: string; readonly handlers: AudienceHandlers }[] = []

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
      audiences.push({ trait: traitName(name), handlers })
    },

    dispatch(message, wire, delivery) {
      const calls = new Calls(message, delivery)
      calls.run(byType.get(message.type))
      if (wire.type === 'track') calls.run(byEvent.get(wire.event))
      for (const { trait, handlers } of audiences) {
        const isMember = membership(wire, trait)
        const handler = isMember === undefined ? undefined : isMember ? handlers.entered : handlers.exited
        if (handler !== undefined) calls.run([handler])
      }
      calls.run(byType.get('*'))
      return calls.done()
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

/** The calls that one message causes: started at once, then waited for together. */
class Calls {
  readonly #message: Message
  readonly #delivery: Delivery
  readonly #failures: unknown[] = []
  #pending: Promise<void>[] | undefined
  #count = 0

  constructor(message: Message, delivery: Delivery) {
    this.#message = message
    this.#delivery = delivery
  }

  run(handlers: readonly Handler[] | undefined): void {
    if (handlers === undefined) return
    for (const handler of handlers) {
      this.#count++
      try {
        const result = handler(this.#message, this.#delivery)
        if (isThenable(result)) this.#wait(result)
      } catch (failure) {
        this.#failures.push(failure)
      }
    }
  }

  done(): Promise<void> | undefined {
    if (this.#pending === undefined) return this.#throwIfAnyFailed()
    return Promise.all(this.#pending).then(() => this.#throwIfAnyFailed())
  }

  #wait(result: PromiseLike<unknown>): void {
    this.#pending ??= []
    this.#pending.push(
      Promise.resolve(result).then(
        () => {},
        (failure) => void this.#failures.push(failure),
      ),
    )
  }

  #throwIfAnyFailed(): undefined {
    if (this.#failures.length === 0) return
    const cause = new AggregateError(this.#failures, 'handlers failed')
    const message = `${this.#failures.length} of ${this.#count} handlers failed.`
    throw new HooklineError('handler_failed', message, { cause })
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

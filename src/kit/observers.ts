/** The observers of one receiver, destination or collector. An observer that fails causes a warning and has no other effect. */

import { isThenable } from './callbacks.ts'
import { requireFunction, requireOptions } from './checks.ts'
import type { Clock } from './clock.ts'
import { createWarning } from './warning.ts'

export type EventOf<Observer, Name extends keyof Observer> =
  NonNullable<Observer[Name]> extends (event: infer Event) => unknown ? Event : never

export class Observers<Observer extends object> {
  readonly clock: Clock
  /** This object while it has an observer; otherwise undefined, so that callers create no events without an observer. */
  current: Observers<Observer> | undefined
  readonly #methods: readonly (keyof Observer & string)[]
  readonly #internal: Observer | undefined
  readonly #warn = createWarning('An observer', 'HOOKLINE_OBSERVER')
  #registered: readonly { readonly observer: Observer }[] = []

  /**
   * @param methods All methods that a user's observer may have.
   * @param internal Passes events on to callbacks, channels and the log. It is called before the other observers, and does not set
   *   `current`.
   */
  constructor(clock: Clock, methods: readonly (keyof Observer & string)[], internal?: Observer) {
    this.clock = clock
    this.#methods = methods
    this.#internal = internal
  }

  /** Registers an observer. Returns a function that removes it. */
  add(observer: Observer): () => void {
    requireOptions('observe', observer, this.#methods)
    for (const name of this.#methods) {
      if (observer[name] !== undefined) requireFunction(`observe: ${name}`, observer[name])
    }
    const added = { observer }
    this.#register([...this.#registered, added])
    return () => this.#register(this.#registered.filter((each) => each !== added))
  }

  publish<Name extends keyof Observer>(name: Name, event: EventOf<Observer, Name>): void {
    if (this.#internal !== undefined) this.#call(this.#internal, name, event)
    for (const { observer } of this.#registered) this.#call(observer, name, event)
  }

  #register(observers: readonly { readonly observer: Observer }[]): void {
    this.#registered = observers
    this.current = observers.length === 0 ? undefined : this
  }

  /** Calls an observer in the same way as `notify` calls a callback, but without creating a function for each call. */
  #call(observer: Observer, name: keyof Observer, event: unknown): void {
    try {
      const method = observer[name] as ((event: unknown) => unknown) | undefined
      const result = method?.call(observer, event)
      if (isThenable(result)) result.then(undefined, this.#warn)
    } catch (failure) {
      this.#warn(failure)
    }
  }
}

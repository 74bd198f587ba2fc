/** The observers of one receiver, destination or collector. Whatever they do changes nothing: one that fails is a warning. */

import { isThenable } from './callbacks.ts'
import { requireFunction, requireOptions } from './checks.ts'
import type { Clock } from './clock.ts'
import { createWarning } from './warning.ts'

type EventOf<Observer, Name extends keyof Observer> =
  NonNullable<Observer[Name]> extends (event: infer Event) => unknown ? Event : never

export interface Observers<Observer> {
  readonly clock: Clock
  /** These observers; undefined while there are none, so that nothing is prepared for them. */
  readonly current: Observers<Observer> | undefined
  add(observer: Observer): () => void
  publish<Name extends keyof Observer>(name: Name, event: EventOf<Observer, Name>): void
}

/**
 * Creates an empty list.
 *
 * @param methods All that an observer of a user may have.
 * @param own Is called before all others, and needs no `current`: what passes events on to callbacks, channels and the log.
 */
export function createObservers<Observer extends object>(
  clock: Clock,
  methods: readonly (keyof Observer & string)[],
  own?: Observer,
): Observers<Observer> {
  const warn = createWarning('An observer', 'HOOKLINE_OBSERVER')
  let registered: readonly { readonly observer: Observer }[] = []

  /** As `notify`, without a function for each call. */
  function call(observer: Observer, name: keyof Observer, event: unknown): void {
    try {
      const method = observer[name] as ((event: unknown) => unknown) | undefined
      const result = method?.call(observer, event)
      if (isThenable(result)) result.then(undefined, warn)
    } catch (failure) {
      warn(failure)
    }
  }

  const observers: Observers<Observer> = {
    clock,
    get current() {
      return registered.length === 0 ? undefined : observers
    },
    add(observer) {
      requireOptions('observe', observer, methods)
      for (const name of methods) if (observer[name] !== undefined) requireFunction(`observe: ${name}`, observer[name])
      const added = { observer }
      registered = [...registered, added]
      return () => {
        registered = registered.filter((each) => each !== added)
      }
    },
    publish(name, event) {
      if (own !== undefined) call(own, name, event)
      for (const { observer } of registered) call(observer, name, event)
    },
  }
  return observers
}

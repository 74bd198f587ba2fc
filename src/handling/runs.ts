/** Runs the handlers of a message, and records each run of a delivery that is observed. */

import { HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { isThenable } from '../options/callbacks.ts'
import type { Observed, OpenDelivery } from './open-delivery.ts'
import type { Handler } from './selection.ts'

/** A handler, and what it was registered for. */
interface Named {
  readonly on: string
  readonly handler: Handler
}

/** Starts all handlers, then waits for all. */
export function runAll(
  handlers: readonly Named[],
  message: Message,
  delivery: OpenDelivery,
): Promise<void> | undefined {
  const failures: unknown[] = []
  const pending: Promise<unknown>[] = []
  const fail = (failure: unknown): void => {
    failures.push(failure)
  }
  const { observed } = delivery
  for (const named of handlers) {
    try {
      const result =
        observed === undefined ? named.handler(message, delivery) : record(named, message, delivery, observed)
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

/** Calls a handler. A run that ends after its delivery is not recorded: that was published. */
function record(
  { on, handler }: Named,
  message: Message,
  delivery: OpenDelivery,
  { observers: { clock }, runs }: Observed,
): unknown {
  const startedAt = clock.monotonic()
  const end = (error?: unknown): void => {
    if (delivery.expired === undefined) {
      runs.push({ on, name: handler.name, durationMs: clock.monotonic() - startedAt, error })
    }
  }
  const fail = (failure: unknown): never => {
    end(failure ?? new Error(`It threw ${failure}.`))
    throw failure
  }
  let result: unknown
  try {
    result = handler(message, delivery)
  } catch (failure) {
    return fail(failure)
  }
  if (isThenable(result)) return result.then(() => end(), fail)
  return end()
}

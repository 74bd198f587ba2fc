/** Runs the handlers of a message, and records each run of a delivery that is observed. */

import { describeError, HooklineError } from '../message/error.ts'
import type { Message } from '../message/message.ts'
import { isThenable } from '../options/callbacks.ts'
import type { OpenDelivery } from './open-delivery.ts'
import type { Handler } from './selection.ts'

interface Named {
  readonly on: string
  readonly handler: Handler
}

export function runAll(
  handlers: readonly Named[],
  message: Message,
  delivery: OpenDelivery,
): Promise<void> | undefined {
  const failures: unknown[] = []
  const pending: Promise<unknown>[] = []
  for (const named of handlers) {
    const startedAt = delivery.observed?.observers.clock.monotonic() ?? 0
    const fail = (failure: unknown): void => {
      failures.push(failure)
      record(delivery, named, startedAt, failure ?? new Error(describeError(failure)))
    }
    try {
      const result = named.handler(message, delivery)
      if (isThenable(result)) {
        pending.push(Promise.resolve(result).then(() => record(delivery, named, startedAt), fail))
      } else record(delivery, named, startedAt)
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

/** Records a run, unless its delivery has ended before: that was published. */
function record({ observed, expired }: OpenDelivery, { on, handler }: Named, startedAt: number, error?: unknown): void {
  if (observed === undefined || expired !== undefined) return
  const durationMs = observed.observers.clock.monotonic() - startedAt
  observed.runs.push({ on, name: handler.name, durationMs, error })
}

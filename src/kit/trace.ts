/** Traces an operation through a tracing channel of `node:diagnostics_channel`. */

import type { TracingChannel } from 'node:diagnostics_channel'
import { notify } from './callbacks.ts'
import { createWarning } from './warning.ts'

/** The event of a tracing channel: the same object from the start of an operation to its end. */
export interface TracedEvent {
  /**
   * Runs the operation inside a context whose AsyncLocalStorage you cannot pass to `bindStore`, such as the context of
   * OpenTelemetry. Set this function at `start`. It gets a function `run`, which it must call once, synchronously. If an
   * earlier subscriber has set `around`, call the earlier function inside yours. If `around` throws, the process emits a
   * warning.
   */
  around?: (run: () => void) => void
}

const warn = createWarning('`around` of a tracing channel', 'HOOKLINE_OBSERVER')

/**
 * Publishes an operation as `tracePromise` does. Check `hasSubscribers` before the call, so that nothing is created for an operation that
 * is not traced.
 *
 * @param work Begins the operation, and never throws. Runs exactly once, whatever a subscriber does.
 * @param ended Settles when the operation ends.
 */
export function trace<Event extends TracedEvent>(
  channel: TracingChannel<object, Event>,
  event: Event,
  work: () => void,
  ended: Promise<unknown>,
): void {
  let hasRun = false
  const runOnce = (): void => {
    if (hasRun) return
    hasRun = true
    work()
  }
  const begin = (): Promise<unknown> => {
    notify(() => event.around?.(runOnce), warn)
    runOnce()
    return ended
  }
  channel.tracePromise(begin, event).catch(() => {}) // The code that created `ended` handles its error.
}

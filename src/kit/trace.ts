/** Traces an operation through a tracing channel of `node:diagnostics_channel`. */

import type { TracingChannel } from 'node:diagnostics_channel'
import { notify } from './callbacks.ts'
import { createWarning } from './warning.ts'

/** The event of a tracing channel: one object from the start of an operation to its end. */
export interface TracedEvent {
  /**
   * Set this at `start` to run the operation inside a context that is not in an AsyncLocalStorage of yours: `around` gets a function, and
   * must call it once, synchronously. If an earlier subscriber has set `around`, call that function inside yours. An error of `around`
   * becomes a process warning.
   */
  around?: (run: () => void) => void
}

const warn = createWarning('`around` of a tracing channel', 'HOOKLINE_OBSERVER')

/**
 * Publishes an operation as `tracePromise` does. Check `hasSubscribers` first: an operation that is not traced creates nothing.
 *
 * @param work Begins the operation, and never throws. Runs exactly once, whatever a subscriber does.
 * @param ended Settles when the operation ends.
 */
export function trace<Event extends TracedEvent>(
  channel: TracingChannel<unknown, Event>,
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
  channel.tracePromise(begin, event).catch(() => {}) // The owner of `ended` handles its error.
}

/** Continues the trace of a delivery, which its `traceparent` header names. */

import { type Context, context, propagation, trace } from '@opentelemetry/api'
import type { Delivery } from '../receive/delivery.ts'
import type { Handler } from '../receive/selection.ts'

/**
 * Returns the context in which spans of a delivery begin: the one that the propagator reads from its headers. An active
 * span of the same trace, such as that of the HTTP server, stays the parent instead.
 */
export function contextOf({ headers }: Delivery): Context {
  const active = context.active()
  const extracted = propagation.extract(active, headers)
  const isSameTrace = trace.getSpanContext(extracted)?.traceId === trace.getSpanContext(active)?.traceId
  return isSameTrace ? active : extracted
}

/**
 * Wraps a handler so that it runs in the trace of its delivery. Spans that start inside belong to it, also when a message
 * waits in an inbox first.
 *
 * @example
 * receiver.on('track', inTrace(async (message) => save(message)))
 */
export function inTrace<M>(handler: Handler<M>): Handler<M> {
  return (message, delivery) => {
    let parent: Context
    try {
      parent = contextOf(delivery)
    } catch {
      return handler(message, delivery) // A failing propagator must not keep the message from being handled.
    }
    return context.with(parent, () => handler(message, delivery))
  }
}

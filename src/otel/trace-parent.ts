/** The trace that a delivery belongs to: that of its `traceparent` header. */

import { type Context, context, propagation, trace } from '@opentelemetry/api'
import type { Delivery } from '../receiver/delivery.ts'
import type { Handler } from '../receiver/handlers.ts'

/**
 * The context in which spans of a delivery begin: what its headers say, read by the propagator that is set up. A span of
 * the same trace that is active already, that of the HTTP server, is nearer and stays the parent.
 */
export function contextOf({ headers }: Delivery): Context {
  const active = context.active()
  const extracted = propagation.extract(active, headers)
  const isSameTrace = trace.getSpanContext(extracted)?.traceId === trace.getSpanContext(active)?.traceId
  return isSameTrace ? active : extracted
}

/**
 * Wraps a handler so that it runs in the trace of its delivery: spans that are made inside join it, also when an inbox
 * hands the message out much later.
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
      return handler(message, delivery) // A propagator that fails is no reason not to handle the message.
    }
    return context.with(parent, () => handler(message, delivery))
  }
}

/** Chooses the context in which a span begins, and runs work inside a span. */

import { type Context, context, propagation, ROOT_CONTEXT, type Span, trace } from '@opentelemetry/api'
import type { TracedEvent } from '../kit/trace.ts'
import type { Delivery } from '../receive/delivery.ts'

/**
 * Returns the context in which the spans of a delivery begin. This is the context that the propagator reads from the headers of the
 * delivery, unless a span of the same trace is active, such as that of the HTTP server: the active span is then the parent. Without trace
 * headers, the active span is the parent. The active span is unrelated to a message from an inbox, so such a message without trace headers
 * has no parent.
 */
export function contextOf({ delivery, isStored = false }: { delivery: Delivery; isStored?: boolean }): Context {
  const active = context.active()
  const extracted = propagation.extract(isStored ? ROOT_CONTEXT : active, delivery.headers)
  const isSameTrace = trace.getSpanContext(extracted)?.traceId === trace.getSpanContext(active)?.traceId
  return isSameTrace ? active : extracted
}

/** Makes the span active in the operation, and in everything that the operation starts. */
export function runInside(event: TracedEvent, span: Span, parent: Context): void {
  const inside = trace.setSpan(parent, span)
  const { around = (run) => run() } = event
  event.around = (run) => around(() => context.with(inside, run))
}

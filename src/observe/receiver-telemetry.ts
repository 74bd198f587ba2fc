/** Creates messaging spans and metrics from the diagnostics of a receiver. */

import {
  type Attributes,
  context,
  type Meter,
  type MetricOptions,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { HooklineError } from '../protocol/error.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Delivery } from '../receive/delivery.ts'
import type {
  FailedEvent,
  HandledEvent,
  HandleEvent,
  IgnoredEvent,
  ReceivedEvent,
  RefusedEvent,
  StoredEvent,
  UnplannedEvent,
} from '../receive/events.ts'
import { contextOf, runInside } from './spans.ts'

/** The parts of an event that become attributes or times of its span. */
interface Work {
  readonly message: ReceivedMessage | undefined
  readonly delivery: Delivery
  readonly isStored?: boolean
  readonly durationMs?: number
}

const SECONDS: MetricOptions = {
  unit: 's',
  advice: { explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] },
}

/** Creates a subscriber for each channel. The subscribers do not use `this`, because `observe` passes them on as plain functions. */
export function createReceiverTelemetry(tracer: Tracer, meter: Meter) {
  const instruments = createInstruments(meter)

  const spans = new WeakMap<Delivery, Span>()

  /**
   * Records one attempt to handle a message. The attributes in `ofSpan` are set only on the span, because they would split the metric into
   * too many series.
   */
  function addAttempt(event: HandledEvent | FailedEvent, attributes: Attributes, ofSpan: Attributes = {}): void {
    instruments.processDuration.record(event.durationMs / 1000, attributes)
    // There is no span yet if the attempt failed before its handlers ran, or began before `observe` was called.
    const span = spans.get(event.delivery) ?? startProcess(event)
    endProcess(event.delivery, span, { ...attributes, ...ofSpan }, 'error' in event ? event.error : undefined)
  }

  function startProcess(event: HandleEvent | HandledEvent | FailedEvent): Span {
    const ofSpan = { 'messaging.operation.type': 'process', 'hookline.attempt': event.attempt }
    return startSpan(tracer, 'process', SpanKind.CONSUMER, event, {
      ...operationAttributes('process', event),
      ...ofSpan,
    })
  }

  function endProcess(delivery: Delivery, span: Span, attributes: Attributes, error: HooklineError | undefined): void {
    spans.delete(delivery)
    span.setAttributes(attributes)
    if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
    span.end()
  }

  return {
    received(event: ReceivedEvent): void {
      instruments.received.add(1, operationAttributes('process', event))
    },
    unplanned(event: UnplannedEvent): void {
      instruments.unplanned.add(1, operationAttributes('process', event))
    },
    refused({ error }: RefusedEvent): void {
      instruments.refused.add(1, { 'error.type': error.code, 'http.response.status_code': error.status })
    },
    stored(event: StoredEvent): void {
      const attributes = operationAttributes('store', event)
      instruments.stored.add(1, attributes)
      instruments.storeDuration.record(event.durationMs / 1000, attributes)
      startSpan(tracer, 'store', SpanKind.CLIENT, event, { ...attributes, 'messaging.operation.type': 'send' }).end()
    },
    handled(event: HandledEvent): void {
      const attributes = operationAttributes('process', event)
      instruments.handled.add(1, attributes)
      addAttempt(event, attributes)
    },
    ignored(event: IgnoredEvent): void {
      instruments.ignored.add(1, operationAttributes('process', event))
    },
    failed(event: FailedEvent): void {
      const attributes = { ...operationAttributes('process', event), 'error.type': event.error.code }
      const next = { 'hookline.next': typeof event.next === 'string' ? event.next : 'retry' }
      instruments.failed.add(1, { ...attributes, ...next })
      addAttempt(event, attributes, next)
    },
    'handle:start'(event: HandleEvent): void {
      const span = startProcess(event)
      spans.set(event.delivery, span)
      runInside(event, span, contextOf(event))
    },
    /**
     * Ends the span of an attempt whose message was released by `close` or `work`, because no other event reports the end of the attempt.
     */
    'handle:asyncEnd'({ delivery, error }: HandleEvent): void {
      const span = spans.get(delivery)
      if (span === undefined || error === undefined) return
      endProcess(delivery, span, { 'error.type': error.code, 'hookline.next': 'retry' }, error)
    },
  }
}

function createInstruments(meter: Meter) {
  const count = (name: string, description: string, unit = '{message}') =>
    meter.createCounter(name, { description, unit })
  const time = (name: string, description: string) => meter.createHistogram(name, { description, ...SECONDS })
  const consumed = 'Valid messages that went to their handlers or into the inbox.'
  return {
    received: count('messaging.client.consumed.messages', consumed),
    unplanned: count('hookline.receiver.unplanned', 'Messages whose event has no schema.'),
    refused: count('hookline.receiver.refused', 'Requests that were refused or failed.', '{request}'),
    stored: count('hookline.receiver.stored', 'Messages that were stored in the inbox.'),
    handled: count('hookline.receiver.handled', 'Messages whose handlers succeeded.'),
    ignored: count('hookline.receiver.ignored', 'Messages that no handler matches.'),
    failed: count('hookline.receiver.failed', 'Attempts to handle a message that failed or took too long.'),
    storeDuration: time('hookline.receiver.store.duration', 'Duration of storing a message in the inbox.'),
    processDuration: time('messaging.process.duration', 'Duration of the handlers of a message.'),
  }
}

/** Starts a span. If the work has a `durationMs`, it ends now, and the span starts at the time when the work began. */
function startSpan(tracer: Tracer, name: string, kind: SpanKind, work: Work, given: Attributes): Span {
  const { message, delivery, durationMs } = work
  const parent = contextOf(work)
  // The span belongs to the trace of the delivery. If another trace is active, such as the trace of a worker, the span links to that trace.
  const active = trace.getSpanContext(context.active())
  const isOtherTrace = active !== undefined && active.traceId !== trace.getSpanContext(parent)?.traceId
  const links = isOtherTrace ? [{ context: active }] : []
  const attributes: Attributes = { ...given, 'messaging.message.id': delivery.id }
  if (message?.type === 'track') attributes['hookline.message.event'] = message.event
  const title = message === undefined ? name : `${name} ${message.type}`
  const options: SpanOptions = { kind, attributes, links }
  if (durationMs !== undefined) options.startTime = Date.now() - durationMs
  return tracer.startSpan(title, options, parent)
}

function operationAttributes(name: string, { message, delivery }: Pick<Work, 'message' | 'delivery'>): Attributes {
  const attributes: Attributes = { 'messaging.system': 'hookline', 'messaging.operation.name': name }
  // Handlers choose messages by type as subscribers choose them by topic, so the type is the destination.
  if (message !== undefined) attributes['messaging.destination.name'] = message.type
  if (!delivery.verified) attributes['hookline.verified'] = false
  return attributes
}

/** What a receiver tells, as spans and metrics of a messaging system. */

import { type Attributes, context, type Meter, SpanKind, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import type { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import type { Delivery } from '../receiver/delivery.ts'
import type { FailedEvent, HandledEvent, ReceivedEvent, RejectedEvent, StoredEvent } from '../receiver/events.ts'
import { SECONDS } from './seconds.ts'
import { contextOf } from './trace-parent.ts'

/** What becomes of each event. */
export interface ReceiverTelemetry {
  received(event: ReceivedEvent): void
  rejected(event: RejectedEvent): void
  stored(event: StoredEvent): void
  handled(event: HandledEvent): void
  failed(event: FailedEvent): void
}

/** Something that was done with a message and is over now. */
interface Work {
  readonly message: Message | undefined
  readonly delivery: Delivery
  readonly durationMs: number
  readonly error?: HooklineError
}

/** Makes the instruments. */
export function createReceiverTelemetry(tracer: Tracer, meter: Meter): ReceiverTelemetry {
  const received = meter.createCounter('messaging.client.consumed.messages', {
    description: 'Messages that are authentic and valid, and went to their handlers or into the inbox.',
    unit: '{message}',
  })
  const rejected = meter.createCounter('hookline.receiver.rejected', {
    description: 'Requests that were refused or could not be taken.',
    unit: '{request}',
  })
  const stored = meter.createCounter('hookline.receiver.stored', {
    description: 'Messages that are in the inbox.',
    unit: '{message}',
  })
  const handled = meter.createCounter('hookline.receiver.handled', {
    description: 'Messages whose handlers all succeeded.',
    unit: '{message}',
  })
  const failed = meter.createCounter('hookline.receiver.failed', {
    description: 'Times that handlers of a message failed or took too long.',
    unit: '{message}',
  })
  const storeDuration = meter.createHistogram('hookline.receiver.store.duration', {
    description: 'How long it took to store a message in the inbox.',
    ...SECONDS,
  })
  const processDuration = meter.createHistogram('messaging.process.duration', {
    description: 'How long the handlers of a message took.',
    ...SECONDS,
  })

  function addSpan(name: string, kind: SpanKind, work: Work, attributes: Attributes): void {
    const { message, delivery, durationMs, error } = work
    const parent = contextOf(delivery)
    const ambient = trace.getSpanContext(context.active())
    const isElsewhere = ambient !== undefined && ambient.traceId !== trace.getSpanContext(parent)?.traceId
    const endTime = Date.now()
    const span = tracer.startSpan(
      message === undefined ? name : `${name} ${message.type}`,
      {
        kind,
        attributes: {
          ...attributes,
          'messaging.message.id': delivery.id,
          ...(message?.type === 'track' ? { 'hookline.message.event': message.event } : {}),
        },
        links: isElsewhere ? [{ context: ambient }] : [],
        startTime: endTime - durationMs,
      },
      parent,
    )
    if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error.message })
    span.end(endTime)
  }

  return {
    received({ message }) {
      received.add(1, operation('process', message))
    },
    rejected({ error }) {
      rejected.add(1, { 'error.type': error.code, 'http.response.status_code': error.status })
    },
    stored(event) {
      const attributes = operation('store', event.message)
      stored.add(1, attributes)
      storeDuration.record(event.durationMs / 1000, attributes)
      addSpan('store', SpanKind.CLIENT, event, { ...attributes, 'messaging.operation.type': 'send' })
    },
    handled(event) {
      const attributes = operation('process', event.message)
      handled.add(1, attributes)
      processDuration.record(event.durationMs / 1000, attributes)
      addSpan('process', SpanKind.CONSUMER, event, {
        ...attributes,
        'messaging.operation.type': 'process',
        'hookline.attempt': event.attempt,
      })
    },
    failed(event) {
      const attributes = { ...operation('process', event.message), 'error.type': event.error.code }
      const next = { 'hookline.next': typeof event.next === 'string' ? event.next : 'retry' }
      failed.add(1, { ...attributes, ...next })
      processDuration.record(event.durationMs / 1000, attributes)
      addSpan('process', SpanKind.CONSUMER, event, {
        ...attributes,
        ...next,
        'messaging.operation.type': 'process',
        'hookline.attempt': event.attempt,
      })
    },
  }
}

/** What is said of every message: few values each, so that metrics can bear them. */
function operation(name: string, message: Message | undefined): Attributes {
  return {
    'messaging.system': 'hookline',
    'messaging.operation.name': name,
    // Handlers subscribe to types as others do to topics.
    ...(message === undefined ? {} : { 'messaging.destination.name': message.type }),
  }
}

/** Makes spans and metrics of a messaging system from the diagnostics of a receiver. */

import {
  type Attributes,
  context,
  type Meter,
  type MetricOptions,
  SpanKind,
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
  IgnoredEvent,
  ReceivedEvent,
  RefusedEvent,
  StoredEvent,
  UnplannedEvent,
} from '../receive/events.ts'
import { contextOf } from './in-trace.ts'

interface Work {
  readonly message: ReceivedMessage | undefined
  readonly delivery: Delivery
  readonly durationMs: number
  readonly error?: HooklineError
}

const SECONDS: MetricOptions = {
  unit: 's',
  advice: { explicitBucketBoundaries: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10] },
}

export function createReceiverTelemetry(tracer: Tracer, meter: Meter) {
  const count = (name: string, description: string, unit = '{message}') =>
    meter.createCounter(name, { description, unit })
  const time = (name: string, description: string) => meter.createHistogram(name, { description, ...SECONDS })
  const consumed = 'Valid messages that went to their handlers or into the inbox.'
  const received = count('messaging.client.consumed.messages', consumed)
  const unplanned = count('hookline.receiver.unplanned', 'Messages whose event has no schema.')
  const refused = count('hookline.receiver.refused', 'Requests that were refused or failed.', '{request}')
  const stored = count('hookline.receiver.stored', 'Messages that were stored in the inbox.')
  const handled = count('hookline.receiver.handled', 'Messages whose handlers succeeded.')
  const ignored = count('hookline.receiver.ignored', 'Messages that no handler matches.')
  const failed = count('hookline.receiver.failed', 'Attempts to handle a message that failed or took too long.')
  const storeDuration = time('hookline.receiver.store.duration', 'Duration of storing a message in the inbox.')
  const processDuration = time('messaging.process.duration', 'Duration of the handlers of a message.')

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

  function addProcess(event: HandledEvent | FailedEvent, attributes: Attributes, more: Attributes = {}): void {
    processDuration.record(event.durationMs / 1000, attributes)
    addSpan('process', SpanKind.CONSUMER, event, {
      ...attributes,
      ...more,
      'messaging.operation.type': 'process',
      'hookline.attempt': event.attempt,
    })
  }

  return {
    received(event: ReceivedEvent): void {
      received.add(1, operation('process', event))
    },
    unplanned(event: UnplannedEvent): void {
      unplanned.add(1, operation('process', event))
    },
    refused({ error }: RefusedEvent): void {
      refused.add(1, { 'error.type': error.code, 'http.response.status_code': error.status })
    },
    stored(event: StoredEvent): void {
      const attributes = operation('store', event)
      stored.add(1, attributes)
      storeDuration.record(event.durationMs / 1000, attributes)
      addSpan('store', SpanKind.CLIENT, event, { ...attributes, 'messaging.operation.type': 'send' })
    },
    handled(event: HandledEvent): void {
      const attributes = operation('process', event)
      handled.add(1, attributes)
      addProcess(event, attributes)
    },
    ignored(event: IgnoredEvent): void {
      ignored.add(1, operation('process', event))
    },
    failed(event: FailedEvent): void {
      const attributes = { ...operation('process', event), 'error.type': event.error.code }
      const next = { 'hookline.next': typeof event.next === 'string' ? event.next : 'retry' }
      failed.add(1, { ...attributes, ...next })
      addProcess(event, attributes, next)
    },
  }
}

function operation(name: string, { message, delivery }: Pick<Work, 'message' | 'delivery'>): Attributes {
  return {
    'messaging.system': 'hookline',
    'messaging.operation.name': name,
    // A type is to handlers what a topic is to subscribers.
    ...(message === undefined ? {} : { 'messaging.destination.name': message.type }),
    ...(delivery.verified ? {} : { 'hookline.verified': false }),
  }
}

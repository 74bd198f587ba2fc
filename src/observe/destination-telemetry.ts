/** Creates an HTTP client span for each post of a destination or a sender, and metrics from the reports of a destination. */

import {
  type Attributes,
  context,
  type Meter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanStatus,
  SpanStatusCode,
  type Tracer,
} from '@opentelemetry/api'
import type { CircuitEvent } from '../send/circuit.ts'
import type { DeliverEvent, DeliveryReport, SkippedEvent } from '../send/destination-events.ts'
import type { Attempt } from '../send/sender-types.ts'
import { runInside } from './spans.ts'

export function createDestinationTelemetry(tracer: Tracer, meter: Meter) {
  const count = (name: string, unit: string, description: string) =>
    meter.createCounter(`hookline.destination.${name}`, { unit, description })
  const rounds = count('rounds', '{round}', 'Rounds of attempts, by result: delivered, retrying or failed.')
  const attempts = count('attempts', '{attempt}', 'Attempts to post a message to a URL.')
  const skips = count('skipped', '{message}', 'Messages that were not queued, by reason.')
  const circuits = count('circuits', '{circuit}', 'Circuits that opened or closed, by the new state.')

  const spans = new WeakMap<DeliverEvent, Span>()

  return {
    attempt({ status, reason, latest }: DeliveryReport): void {
      const attributes: Attributes = { 'hookline.delivery.status': status }
      if (reason !== undefined) attributes['error.type'] = reason
      rounds.add(1, attributes)
      for (const attempt of latest) attempts.add(1, attributesOf(attempt))
    },
    'deliver:start'(event: DeliverEvent): void {
      const { url, id, attempt } = event
      const attributes: Attributes = { ...requestAttributes(url), 'url.full': url }
      if (id !== undefined) attributes['messaging.message.id'] = id
      if (attempt > 1) attributes['http.request.resend_count'] = attempt - 1
      // A destination posts after its caller has continued, so the active span is unrelated. A sender posts while its caller waits.
      const parent = id === undefined ? context.active() : ROOT_CONTEXT
      const span = tracer.startSpan('POST', { kind: SpanKind.CLIENT, attributes }, parent)
      spans.set(event, span)
      runInside(event, span, parent)
    },
    'deliver:asyncEnd'(event: DeliverEvent): void {
      const { result } = event
      const span = spans.get(event)
      if (result === undefined || span === undefined) return // The attempt began before `observe` was called.
      span.setAttributes(attributesOf(result))
      if (!result.ok) span.setStatus(failedStatus(result))
      span.end()
    },
    skipped: ({ reason }: SkippedEvent) => skips.add(1, { 'hookline.skip.reason': reason }),
    circuit: ({ url, state }: CircuitEvent) => circuits.add(1, { ...serverOf(url), 'hookline.circuit.state': state }),
  }
}

function attributesOf({ url, ok, status, error }: Attempt): Attributes {
  const kind = error ?? (ok ? undefined : `${status}`)
  const attributes = requestAttributes(url)
  if (status !== undefined) attributes['http.response.status_code'] = status
  if (kind !== undefined) attributes['error.type'] = kind
  return attributes
}

function requestAttributes(url: string): Attributes {
  return { 'http.request.method': 'POST', ...serverOf(url) }
}

/**
 * Returns the status of the span of a failed attempt. If there was an answer, the status has no message, because the HTTP status of the
 * answer is already an attribute.
 */
function failedStatus({ reason }: Attempt): SpanStatus {
  const code = SpanStatusCode.ERROR
  return reason === undefined ? { code } : { code, message: reason }
}

function serverOf(url: string): Attributes {
  const { protocol, hostname, port } = new URL(url)
  const defaultPort = protocol === 'https:' ? 443 : 80
  return { 'server.address': hostname, 'server.port': port === '' ? defaultPort : Number(port) }
}

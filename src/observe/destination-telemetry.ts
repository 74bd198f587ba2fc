/** Makes spans and metrics of an HTTP client from the reports of a destination. */

import { type Attributes, type Meter, SpanKind, type SpanStatus, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import type { CircuitEvent } from '../send/circuit.ts'
import type { DeliveryReport, SkippedEvent } from '../send/destination-events.ts'
import type { Attempt } from '../send/sender-types.ts'

export function createDestinationTelemetry(tracer: Tracer, meter: Meter) {
  const count = (name: string, unit: string, description: string) =>
    meter.createCounter(`hookline.destination.${name}`, { unit, description })
  const rounds = count('rounds', '{round}', 'Rounds of attempts, by their result: delivered, retrying or failed.')
  const attempts = count('attempts', '{attempt}', 'Attempts to post a message to a URL.')
  const skips = count('skipped', '{message}', 'Messages that were not queued, by the reason.')
  const circuits = count('circuits', '{circuit}', 'Circuits that opened or closed, by the new state.')

  function addAttempt(attempt: Attempt, report: DeliveryReport): void {
    const attributes = attributesOf(attempt)
    attempts.add(1, attributes)
    const resends = countEarlierAttempts(attempt, report)
    const startTime = attempt.at.getTime()
    const spanAttributes: Attributes = { ...attributes, 'url.full': attempt.url, 'messaging.message.id': report.id }
    if (resends > 0) spanAttributes['http.request.resend_count'] = resends
    const span = tracer.startSpan('POST', { kind: SpanKind.CLIENT, attributes: spanAttributes, startTime })
    if (!attempt.ok) span.setStatus(failedStatus(attempt))
    span.end(startTime + attempt.durationMs)
  }

  return {
    attempt(report: DeliveryReport): void {
      const { status, reason, latest } = report
      const attributes: Attributes = { 'hookline.delivery.status': status }
      if (reason !== undefined) attributes['error.type'] = reason
      rounds.add(1, attributes)
      for (const attempt of latest) addAttempt(attempt, report)
    },
    skipped: ({ reason }: SkippedEvent) => skips.add(1, { 'hookline.skip.reason': reason }),
    circuit: ({ url, state }: CircuitEvent) => circuits.add(1, { ...serverOf(url), 'hookline.circuit.state': state }),
  }
}

function attributesOf({ url, ok, status, error }: Attempt): Attributes {
  const kind = error ?? (ok ? undefined : `${status}`)
  const attributes: Attributes = { 'http.request.method': 'POST', ...serverOf(url) }
  if (status !== undefined) attributes['http.response.status_code'] = status
  if (kind !== undefined) attributes['error.type'] = kind
  return attributes
}

/** Returns the status of a span. It has no message if there was an answer, whose status is an attribute already. */
function failedStatus({ reason }: Attempt): SpanStatus {
  const code = SpanStatusCode.ERROR
  return reason === undefined ? { code } : { code, message: reason }
}

function serverOf(url: string): Attributes {
  const { protocol, hostname, port } = new URL(url)
  const defaultPort = protocol === 'https:' ? 443 : 80
  return { 'server.address': hostname, 'server.port': port === '' ? defaultPort : Number(port) }
}

/** Counts the attempts of earlier rounds at the same URL. */
function countEarlierAttempts({ url }: Attempt, { attempts, latest }: DeliveryReport): number {
  const isSame = (other: Attempt): boolean => other.url === url
  return attempts.filter(isSame).length - latest.filter(isSame).length
}

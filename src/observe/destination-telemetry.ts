/** Makes spans and metrics of an HTTP client from the reports of a destination. */

import { type Attributes, type Meter, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
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
    const resends = countBefore(attempt, report)
    const startTime = attempt.at.getTime()
    const span = tracer.startSpan('POST', {
      kind: SpanKind.CLIENT,
      attributes: {
        ...attributes,
        'url.full': attempt.url,
        'messaging.message.id': report.id,
        ...(resends > 0 ? { 'http.request.resend_count': resends } : {}),
      },
      startTime,
    })
    if (!attempt.ok) {
      const { reason } = attempt // Undefined after an answer, whose status is an attribute already.
      span.setStatus({ code: SpanStatusCode.ERROR, ...(reason !== undefined && { message: reason }) })
    }
    span.end(startTime + attempt.durationMs)
  }

  return {
    attempt(report: DeliveryReport): void {
      const { status, reason, latest } = report
      rounds.add(1, { 'hookline.delivery.status': status, ...(reason === undefined ? {} : { 'error.type': reason }) })
      for (const attempt of latest) addAttempt(attempt, report)
    },
    skipped: ({ reason }: SkippedEvent) => skips.add(1, { 'hookline.skip.reason': reason }),
    circuit: ({ url, state }: CircuitEvent) => circuits.add(1, { ...serverOf(url), 'hookline.circuit.state': state }),
  }
}

function attributesOf({ url, ok, status, error }: Attempt): Attributes {
  const kind = error ?? (ok ? undefined : `${status}`)
  return {
    'http.request.method': 'POST',
    ...serverOf(url),
    ...(status === undefined ? {} : { 'http.response.status_code': status }),
    ...(kind === undefined ? {} : { 'error.type': kind }),
  }
}

function serverOf(url: string): Attributes {
  const { protocol, hostname, port } = new URL(url)
  return {
    'server.address': hostname,
    'server.port': port === '' ? DEFAULT_PORT[protocol as 'http:'] : Number(port),
  }
}

const DEFAULT_PORT = { 'http:': 80, 'https:': 443 }

function countBefore({ url }: Attempt, { attempts, latest }: DeliveryReport): number {
  const isSame = (other: Attempt): boolean => other.url === url
  return attempts.filter(isSame).length - latest.filter(isSame).length
}

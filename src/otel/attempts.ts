/** What a destination tells, as spans and metrics of an HTTP client. */

import { type Attributes, type Meter, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import type { Attempt, DeliveryReport } from '../sender/api.ts'
import { SECONDS } from './seconds.ts'

/** Makes the instruments; what it returns is called with each report. */
export function createAttemptTelemetry(tracer: Tracer, meter: Meter): (report: DeliveryReport) => void {
  const rounds = meter.createCounter('hookline.destination.rounds', {
    description: 'What became of messages, each time it was decided: delivered, retrying or failed.',
    unit: '{round}',
  })
  const attempts = meter.createCounter('hookline.destination.attempts', {
    description: 'Attempts to post a message to a URL.',
    unit: '{attempt}',
  })
  const duration = meter.createHistogram('http.client.request.duration', {
    description: 'How long those attempts took.',
    ...SECONDS,
  })

  function addAttempt(attempt: Attempt, report: DeliveryReport): void {
    const attributes = attributesOf(attempt)
    attempts.add(1, attributes)
    duration.record(attempt.durationMs / 1000, attributes)
    const resends = countBefore(attempt, report)
    const span = tracer.startSpan('POST', {
      kind: SpanKind.CLIENT,
      attributes: {
        ...attributes,
        'url.full': attempt.url,
        'messaging.message.id': report.id,
        ...(resends > 0 ? { 'http.request.resend_count': resends } : {}),
      },
      startTime: attempt.at,
    })
    if (!attempt.ok) {
      const { error, reason } = attempt
      const isSaidByStatus = error === undefined || reason === undefined
      span.setStatus({ code: SpanStatusCode.ERROR, ...(isSaidByStatus ? {} : { message: reason }) })
    }
    span.end(attempt.at + attempt.durationMs)
  }

  return (report) => {
    const { status, reason, latest } = report
    rounds.add(1, { 'hookline.delivery.status': status, ...(reason === undefined ? {} : { 'error.type': reason }) })
    for (const attempt of latest) addAttempt(attempt, report)
  }
}

/** What is said of every attempt: few values each, so that metrics can bear them. */
function attributesOf({ url, ok, status, error }: Attempt): Attributes {
  const { protocol, hostname, port } = new URL(url)
  const kind = error ?? (ok ? undefined : `${status}`)
  return {
    'http.request.method': 'POST',
    'server.address': hostname,
    'server.port': port === '' ? DEFAULT_PORT[protocol as 'http:'] : Number(port),
    ...(status === undefined ? {} : { 'http.response.status_code': status }),
    ...(kind === undefined ? {} : { 'error.type': kind }),
  }
}

const DEFAULT_PORT = { 'http:': 80, 'https:': 443 }

/** How often the message was posted to the URL before this round. */
function countBefore({ url }: Attempt, { attempts, latest }: DeliveryReport): number {
  const isSame = (other: Attempt): boolean => other.url === url
  return attempts.filter(isSame).length - latest.filter(isSame).length
}

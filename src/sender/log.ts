/** The log of failed deliveries ("Outbound event delivery", Errors: a timeout error is logged). */

import type { Attempt, DeliveryReport } from './api.ts'

/** Prints a line for each attempt of a round that failed, and what comes next. No body, no query of a URL. */
export function logFailures({ status, id, latest, retryAt, reason }: DeliveryReport): void {
  if (status === 'delivered') return
  for (const attempt of latest) console.warn(`hookline: message ${id}, ${describe(attempt)}`)
  const next = retryAt === undefined ? `failed: ${reason}` : `goes again at ${new Date(retryAt).toISOString()}`
  console.warn(`hookline: message ${id} ${next}`)
}

function describe({ url, status, error, reason, durationMs }: Attempt): string {
  const what = status === undefined ? `${error} (${reason})` : `status ${status}`
  return `POST ${url}: ${what} after ${Math.round(durationMs)} ms`
}

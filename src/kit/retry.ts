/** Decides whether to make another attempt after a response, and when. The sender and the client share these rules. */

/**
 * Returns whether another attempt may succeed after a response with this status: 408, 429 or any 5xx ("Outbound event delivery", Errors).
 * Every other status is final.
 */
export function isTransient(status: number): boolean {
  return status === 408 || status === 429 || (status >= 500 && status < 600)
}

/** The maximum delay to accept, in seconds: about 30 years. */
const MAX_SECONDS = 1e9

/**
 * Reads the header `Retry-After` (RFC 9110, section 10.2.3), a number of seconds or a date in any of the three HTTP formats, as
 * milliseconds from now. If the header is repeated, the longest delay applies.
 */
export function readRetryAfter(header: unknown, now: number): number | undefined {
  if (header === undefined) return undefined
  const delays = [header].flat().flatMap((value) => readDelay(value, now) ?? [])
  return delays.length === 0 ? undefined : Math.max(...delays)
}

function readDelay(value: unknown, now: number): number | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text), MAX_SECONDS) * 1000
  // Date.parse also reads text that is not an HTTP date.
  const isDate = /^[A-Za-z]{3,9},? [\dA-Za-z]/.test(text)
  const date = isDate ? Date.parse(/GMT$/.test(text) ? text : `${text} GMT`) : Number.NaN // All formats are in GMT.
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

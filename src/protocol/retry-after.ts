/** Reads the header `Retry-After` (RFC 9110, section 10.2.3). */

/** Longer than anybody waits, in seconds: about 30 years. */
const MOST_S = 1e9

/**
 * How long to wait, in milliseconds: from a number of seconds, or from a date in any of the three forms of HTTP. Of a
 * repeated header the longest.
 *
 * @param header As undici gives it: text, or a list where it was repeated.
 * @param now Milliseconds since the epoch.
 * @returns undefined when there is no such header, or it says neither.
 */
export function readRetryAfter(header: unknown, now: number): number | undefined {
  if (header === undefined) return undefined
  const times = [header].flat().flatMap((value) => readOne(value, now) ?? [])
  return times.length === 0 ? undefined : Math.max(...times)
}

function readOne(value: unknown, now: number): number | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text), MOST_S) * 1000
  const isDate = /^[A-Za-z]{3,9},? [\dA-Za-z]/.test(text)
  const date = isDate ? Date.parse(/GMT$/.test(text) ? text : `${text} GMT`) : Number.NaN // All three forms mean GMT.
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

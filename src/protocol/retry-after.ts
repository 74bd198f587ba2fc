/** Reads the header `Retry-After` (RFC 9110, section 10.2.3). */

/**
 * How long to wait, in milliseconds: from a number of seconds, or from a date.
 *
 * @param now Milliseconds since the epoch.
 * @returns undefined when there is no such header, or it says neither.
 */
export function readRetryAfter(header: unknown, now: number): number | undefined {
  if (typeof header !== 'string') return undefined
  const text = header.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const date = /^[A-Za-z]{3,9}, ?\d/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

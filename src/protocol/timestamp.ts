/** Converts times to the form in which they are delivered ("Outbound event delivery", Delivered message fields). */

const ISO_8601 = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?)(?:Z|([+-]\d{2})(?::?(\d{2}))?)?)?$/i

/**
 * Converts a time to ISO 8601 in UTC with milliseconds: `2026-01-15T09:30:00.000Z`. Text without a zone is read as UTC. Returns undefined
 * for any value that is neither a valid Date nor ISO 8601 text.
 */
export function toTimestamp(value: unknown): string | undefined {
  if (typeof value === 'string' && DELIVERED.test(value)) return value // This is a hot path, and most values already have this form.
  const date = typeof value === 'string' ? readIso(value) : value
  if (!(date instanceof Date) || Number.isNaN(date.getTime())) return undefined
  const text = date.toISOString()
  return text.length === LENGTH ? text : undefined // A year before 0 or after 9999 is written with a sign and six digits.
}

/**
 * Converts milliseconds or seconds since 1970 to the same form as {@link toTimestamp}. Returns undefined for a year before 0 or after 9999.
 */
export function timestampOf(time: number): string | undefined {
  return toTimestamp(new Date(Math.abs(time) < SECONDS_BELOW ? Math.round(time * 1_000) : time))
}

/** Numbers below this limit are read as seconds. As milliseconds, the limit is a time in 1973; as seconds, it is a time in 5138. */
const SECONDS_BELOW = 100_000_000_000

/** Matches the delivered form, except on days 29 to 31, which some months lack. Times on those days are parsed instead. */
const DELIVERED = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/

const LENGTH = '2026-01-15T09:30:00.000Z'.length

function readIso(text: string): Date | undefined {
  const parts = ISO_8601.exec(text)
  if (parts === null) return undefined
  const [, day = '', time = '00:00', hours = '+00', minutes = '00'] = parts
  if (!isDay(day)) return undefined
  return new Date(`${day}T${time.replace(',', '.')}${hours}:${minutes}`)
}

/** Returns whether a day exists. Date alone would accept 30 February, and read it as a day in March. */
function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day)
}

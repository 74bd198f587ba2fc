/** Recognises the formats of texts, and texts that are data rather than names. */

const FORMATS: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    'date-time',
    /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/,
  ],
  ['date', /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/],
  ['uuid', /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i],
  ['email', /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z\d-]+(\.[a-z\d-]+)+$/i],
  ['uri', /^[a-z][a-z\d+.-]*:\/\/(%[\da-f]{2}|[\w.~:/?#[\]@!$&'()*+,;=-])+$/i],
]

const MAX_FORMATTED_LENGTH = 2_000

/** All formats, with one bit for each. */
export const ALL_FORMATS: number = 2 ** FORMATS.length - 1

/** Returns which of the given formats a text has, as bits. */
export function findFormats(text: string, among: number): number {
  if (text.length > MAX_FORMATTED_LENGTH) return 0
  return FORMATS.reduce(
    (bits, [, pattern], at) => (bits & (1 << at) && !pattern.test(text) ? bits ^ (1 << at) : bits),
    among,
  )
}

/** Returns the name of the first of these formats; undefined if there is no format. */
export function nameFormat(formats: number): string | undefined {
  return FORMATS.find((_, at) => formats & (1 << at))?.[0]
}

const MAX_NAME_LENGTH = 200
const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/i
const EMAIL = /[^\s@]+@[^\s@]+\.[^\s@]+/
const URL_START = /:\/\//
const DATE = /\d{4}-\d\d-\d\d/
const HEX = /[\da-f]{16}/i
/** Matches an index, an id, a telephone number or an IP address. */
const DIGITS = /^[+(]?\d[\d .,:()/_-]*$/
/** Matches a telephone number or an account number. */
const LONG_NUMBER = /\d([ ./()-]*\d){6}/
/** Matches an id of letters and digits, or an IPv6 address. */
const ID = /^(?=.*\d)(?=.*[a-z])[a-z\d]{20,}$|([\da-f]*:){2}/i

/** Returns whether a key or a text is data, such as an id or a date, rather than a name. */
export function isData(text: string): boolean {
  if (text.length > MAX_NAME_LENGTH || text.includes('@')) return true
  const patterns = [DIGITS, LONG_NUMBER, ID, DATE, HEX, UUID, URL_START]
  return patterns.some((pattern) => pattern.test(text))
}

/** Returns whether the name of an event contains data. Short numbers do not count as data. */
export function isDataEvent(name: string): boolean {
  return name.length > MAX_NAME_LENGTH || EMAIL.test(name) || UUID.test(name) || LONG_NUMBER.test(name)
}

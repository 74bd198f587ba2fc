/** How serialisers write a number, from how it was written: each language reads it into its own types first. */

/** Rewrites a number. Undefined for one that the serialiser refuses. */
export type WriteNumber = (lexeme: string) => string | undefined

/** As it was written. */
export const asWritten: WriteNumber = (lexeme) => lexeme

/** A double; infinity is `null`, and zero has no sign. */
export const javascript: WriteNumber = (lexeme) => JSON.stringify(Number(lexeme))

/** A float64: as in JavaScript, but with the sign of zero. Infinity is refused. */
export const go: WriteNumber = (lexeme) => {
  const value = Number(lexeme)
  return Number.isFinite(value) ? signOfZero(value) + String(value) : undefined
}

/** Whole numbers of any size; a float shows that it is one. */
export const python: WriteNumber = (lexeme) => {
  if (isWhole(lexeme)) return withoutSignOfZero(lexeme)
  const value = Number(lexeme)
  if (!Number.isFinite(value)) return value < 0 ? '-Infinity' : 'Infinity'
  return writeFloat(value, { below: 1e16, fraction: '', exponentDigits: 2 })
}

/** As in Python, with a fraction before each exponent. Infinity is refused. */
export const ruby: WriteNumber = (lexeme) => {
  if (isWhole(lexeme)) return withoutSignOfZero(lexeme)
  const value = Number(lexeme)
  return Number.isFinite(value) ? writeFloat(value, { below: 1e15, fraction: '.0', exponentDigits: 2 }) : undefined
}

/** Rails' `to_json`, which writes infinity as `null`. */
export const rails: WriteNumber = (lexeme) => ruby(lexeme) ?? 'null'

/** With `JSON_PRESERVE_ZERO_FRACTION`: whole numbers of 64 bits, else doubles. Infinity is refused. */
export const phpZeroFraction: WriteNumber = (lexeme) => {
  if (isWhole(lexeme) && isOf64Bits(lexeme)) return withoutSignOfZero(lexeme)
  const value = Number(lexeme)
  return Number.isFinite(value) ? writeFloat(value, { below: 1e17, fraction: '.0', exponentDigits: 1 }) : undefined
}

/** As above, without the fraction of a whole double. */
export const php: WriteNumber = (lexeme) => phpZeroFraction(lexeme)?.replace(/\.0$/, '')

interface FloatForm {
  /** What is as large, or smaller than 0.0001, has an exponent. */
  readonly below: number
  /** What stands between a single digit and its exponent. */
  readonly fraction: string
  /** How many digits an exponent has at least. */
  readonly exponentDigits: number
}

/** Writes the shortest digits that read back as the value; JavaScript finds the same ones. */
function writeFloat(value: number, { below, fraction, exponentDigits }: FloatForm): string {
  const size = Math.abs(value)
  if (size === 0 || (size >= 1e-4 && size < below)) {
    const digits = signOfZero(value) + String(value)
    return digits.includes('.') ? digits : `${digits}.0`
  }
  const [digits = '', exponent = ''] = value.toExponential().split('e')
  const mantissa = digits.includes('.') ? digits : digits + fraction
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(exponentDigits, '0')}`
}

function isWhole(lexeme: string): boolean {
  return /^-?\d+$/.test(lexeme)
}

function isOf64Bits(lexeme: string): boolean {
  return lexeme.length < 19 || BigInt.asIntN(64, BigInt(lexeme)) === BigInt(lexeme)
}

function withoutSignOfZero(lexeme: string): string {
  return lexeme === '-0' ? '0' : lexeme
}

function signOfZero(value: number): string {
  return Object.is(value, -0) ? '-' : ''
}

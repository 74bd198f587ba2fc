/** Checks options and arguments. All errors have one form: what is wrong, what was found, and what to do. */

import { kindOf } from '../protocol/error.ts'
import { MAX_TIMER_MS } from './clock.ts'

/**
 * Creates the error for a wrong option or argument: "`limit` must be a whole number from 1 to 100. Got 'ten'. Pass a
 * number in that range."
 *
 * @param rule The requirement. Follows the name in the error: `must be a function`.
 * @param found The value as {@link show} shows it, or its kind if the value must not be shown. Undefined to show nothing.
 * @param advice What to do, as a whole sentence.
 */
export function invalidOption(name: string, rule: string, found: string | undefined, advice: string): TypeError {
  const got = found === undefined ? '' : ` Got ${found}.`
  return new TypeError(`\`${name}\` ${rule}.${got} ${advice}`)
}

/** Shows a value in an error: short, and on one line. Secrets, write keys and URLs must not be shown: use {@link kindOf} for them. */
export function show(value: unknown): string {
  if (typeof value === 'string') return value.length > 40 ? `a string of ${value.length} characters` : quote(value)
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value)
  return kindOf(value)
}

export { kindOf }

function quote(text: string): string {
  return `'${JSON.stringify(text).slice(1, -1).replaceAll("'", "\\'").replaceAll('\\"', '"')}'`
}

/** Throws unless the options are an object in which every name is known. Without this check, a misspelt option would be ignored. */
export function requireOptions(caller: string, options: unknown, known: readonly string[]): void {
  const name = `${caller}: options`
  if (typeof options !== 'object' || options === null) throw notAnObject(name, options, known)
  refuseUnknown(options, known, '', name)
}

function notAnObject(name: string, given: unknown, known: readonly string[]): TypeError {
  return invalidOption(name, 'must be an object', kindOf(given), `Pass an object. Valid options: ${known.join(', ')}.`)
}

/** A check for each option. A name without a check is not an option. */
export type OptionChecks<Options> = {
  readonly [Name in keyof Required<Options>]: (name: string, value: unknown) => unknown
}

/** Throws for unknown options, and calls the check of each option that is set. */
export function checkOptions<Options extends object>(
  caller: string,
  options: Options,
  checks: OptionChecks<Options>,
): void {
  requireOptions(caller, options, Object.keys(checks))
  for (const name in checks) if (options[name] !== undefined) checks[name](name, options[name])
}

/** Returns a check for whole numbers, like {@link requireInteger}. */
export function whole(least: number, most?: number): (name: string, value: unknown) => number {
  return (name, value) => requireInteger(name, value, least, most)
}

export function aClock(_name: string, clock: unknown): void {
  requireClock(clock)
}

export function anything(): void {}

/**
 * Throws for a name that is not known, and suggests the name that was probably meant. Throws for a list and for bytes, too, because their
 * indices are not names.
 */
export function refuseUnknown(
  options: object,
  known: readonly string[],
  prefix = '',
  all = prefix.slice(0, -1) || 'options',
): void {
  if (Array.isArray(options) || ArrayBuffer.isView(options)) throw notAnObject(all, options, known)
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const near = nearest(name, known) ?? known.find((each) => isPart(each, name) || isPart(name, each))
    const advice = `${near === undefined ? '' : `Did you mean \`${near}\`? `}Valid options: ${known.join(', ')}.`
    throw new TypeError(`\`${prefix}${name}\` is not an option. ${advice}`)
  }
}

/** Returns whether one name is part of another, such as `secret` of `sharedSecret`. */
function isPart(part: string, whole: string): boolean {
  return part.length > 3 && whole.toLowerCase().includes(part.toLowerCase())
}

/** Returns the name that was probably meant: the closest one, if at most two characters differ; otherwise undefined. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const lower = name.toLowerCase()
  for (let changes = 0; changes <= Math.min(2, lower.length - 1); changes++) {
    const near = known.find((each) => isNear(lower, each.toLowerCase(), changes))
    if (near !== undefined) return near
  }
  return undefined
}

/** Returns whether at most this many changes turn one text into the other. A change adds, removes or replaces a character. */
function isNear(from: string, to: string, changes: number): boolean {
  const at = from.split('').findIndex((char, index) => char !== to[index])
  if (at === -1) return to.length - from.length <= changes
  if (changes === 0) return false
  const [fromRest, toRest] = [from.slice(at + 1), to.slice(at + 1)]
  const left = changes - 1
  return isNear(fromRest, toRest, left) || isNear(fromRest, to.slice(at), left) || isNear(from.slice(at), toRest, left)
}

export function requireFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') throw invalidOption(name, 'must be a function', show(value), 'Pass a function.')
}

export function requireText(name: string, value: unknown, example = 'orders'): asserts value is string {
  if (typeof value === 'string' && value !== '') return
  throw invalidOption(name, 'must be a non-empty string', kindOf(value), `Pass a string, for example '${example}'.`)
}

export function requireHandlerName(name: string, value: unknown): void {
  requireText(name, value, 'crm')
  if (HANDLER_NAME.test(value)) return
  const rule = 'must consist of 1 to 64 of the characters a-z0-9._-, beginning with a letter or a digit'
  throw invalidOption(name, rule, show(value), "Pass a name such as 'crm'.")
}

const HANDLER_NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/

/**
 * Checks a secret. The error does not show it.
 *
 * @param secret What to pass, in words: `the write key of the source`. Follows the word "Pass" in the error.
 */
export function requireSecret(name: string, value: unknown, secret: string): asserts value is string {
  if (typeof value === 'string' && value !== '') return
  const advice = `Pass ${secret}. If the secret is not available when your module loads, make this call later, on first use.`
  throw invalidOption(name, 'must be a non-empty string', kindOf(value), advice)
}

/** Checks the key that the callback `name` returned. */
export function requireKey(name: string, key: unknown): asserts key is string {
  if (typeof key === 'string' && key !== '') return
  const advice = 'Return a key of the message, for example an order number.'
  throw invalidOption(`${name}()`, 'must return a non-empty string', kindOf(key), advice)
}

export function requireBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') throw invalidOption(name, 'must be a boolean', show(value), 'Pass true or false.')
}

/** Returns the value if it is a whole number from `least` to `most`; throws otherwise. `most` defaults to the maximum wait of a timer. */
export function requireInteger(name: string, value: unknown, least: number, most: number = MAX_TIMER_MS): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  const rule = `must be a whole number from ${least} to ${most}`
  throw invalidOption(name, rule, show(value), 'Pass a number in that range.')
}

/** Throws unless the time is a valid Date or undefined. */
export function requireTime(name: string, time: unknown): void {
  if (time === undefined || (time instanceof Date && !Number.isNaN(time.getTime()))) return
  throw invalidOption(name, 'must be a valid Date', show(time), 'Pass a Date, or omit it.')
}

export function requireOneOf<T>(name: string, value: unknown, values: readonly T[]): T {
  const found = values.find((each) => each === value)
  if (found !== undefined) return found
  const near = typeof value === 'string' ? nearest(value, values.map(String)) : undefined
  const list = values.map(show).join(', ')
  const rule = values.length === 1 ? list : `one of ${list}`
  const advice = near === undefined ? `Pass ${rule}.` : `Did you mean ${show(near)}? Valid values: ${list}.`
  throw invalidOption(name, `must be ${rule}`, show(value), advice)
}

/**
 * Returns the URL, which must be complete and must not contain credentials or a fragment. Errors never show the URL, because it may contain
 * a token.
 *
 * @param credentialsAdvice How to pass credentials other than in the URL, as a whole sentence.
 */
export function requireUrl(
  name: string,
  value: unknown,
  credentialsAdvice: string,
  example = 'https://example.com/webhooks',
): URL {
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const advice = `Pass a URL that begins with http:// or https://, for example '${example}'.`
    throw url === null
      ? invalidOption(name, 'must be a full URL', kindOf(value), advice)
      : invalidOption(name, 'must be an http or https URL', `a URL with the protocol ${show(url.protocol)}`, advice)
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidOption(name, 'must not contain a user name or a password', undefined, credentialsAdvice)
  }
  if (url.hash !== '') {
    throw invalidOption(
      name,
      'must not contain a fragment',
      undefined,
      'Remove the # and everything after it, which is never sent.',
    )
  }
  return url
}

/** Warns about a secret that was probably read wrongly, but may be intended. Returns whether it warned. */
export function warnIfMisread(name: string, secret: string | null | undefined): boolean {
  if (typeof secret !== 'string') return false
  const suspicion = SUSPICIOUS.find(([, pattern]) => pattern.test(secret))?.[0]
  if (suspicion === undefined) return false
  const advice = 'If the other side does not use exactly the same text, correct the code that reads the secret.'
  process.emitWarning(`\`${name}\` is used exactly as given. ${suspicion}. ${advice}`, { code: 'HOOKLINE_SECRET' })
  return true
}

const SUSPICIOUS: readonly (readonly [suspicion: string, RegExp])[] = [
  ['It ends with a line break', /[\r\n]$/],
  ['It is surrounded by white space', /^\s|\s$/],
  ['It is in quotation marks', /^(["'`]).*\1$/s],
]

/** Returns whether the value is an HTTP token (RFC 9110, section 5.6.2): the name of a header or of a product. */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value)
}

export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  const given: Readonly<Record<string, unknown>> = Object(value)
  return methods.every((name) => typeof given[name] === 'function')
}

export function requireMethods(option: string, value: unknown, methods: readonly string[]): void {
  const given: Readonly<Record<string, unknown>> = Object(value)
  for (const name of methods) requireFunction(`${option}.${name}`, given[name])
}

export function requireClock(clock: unknown): void {
  requireMethods('clock', clock, ['now', 'monotonic', 'setTimeout', 'clearTimeout'])
}

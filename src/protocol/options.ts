/** Checks that everything with options shares. Each throws a TypeError that begins with the option's name. */

import type { Clock } from './clock.ts'

/**
 * Refuses options that do not exist: what they were to change would silently stay as it is.
 *
 * @param prefix What stands before the name where options are nested: `sources[0].`.
 */
export function refuseUnknown(options: object, known: readonly string[], prefix = ''): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`${prefix}${name}: no such option. There are ${known.join(', ')}.`)
  }
}

/** Lets functions pass. */
export function requireFunction(name: string, value: unknown): void {
  if (typeof value !== 'function') throw new TypeError(`${name}: must be a function.`)
}

/** Lets text pass that is not empty. */
export function requireText(name: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value === '') throw new TypeError(`${name}: must be a string that is not empty.`)
}

/** Lets true and false pass. */
export function requireBoolean(name: string, value: unknown): void {
  if (typeof value !== 'boolean') throw new TypeError(`${name}: must be true or false.`)
}

/** Lets a whole number from `least` to `most` pass. Default for `most`: what a timer holds, past which it fires at once. */
export function requireWhole(name: string, value: unknown, least: number, most: number = LONGEST_TIMER_MS): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  throw new TypeError(`${name}: must be a whole number from ${least} to ${most}.`)
}

/** The longest that a timer waits, in milliseconds. */
export const LONGEST_TIMER_MS: number = 2 ** 31 - 1

/**
 * Lets a full URL pass that can be posted to as it is. Errors do not quote it: it may hold a token.
 *
 * @param instead What to do in place of a user and password in it.
 */
export function requireUrl(name: string, value: unknown, instead: string): URL {
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError(`${name}: must be a full URL that begins with http:// or https://.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new TypeError(`${name}: must hold no user and password. ${instead}`)
  }
  if (url.hash !== '') throw new TypeError(`${name}: must hold no #fragment, which is never sent.`)
  return url
}

/** Whether this is a token of HTTP (RFC 9110, section 5.6.2): the name of a header, or of a product. */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && /^[\w!#$%&'*+.^`|~-]+$/.test(value)
}

/** Lets a whole clock pass. */
export function requireClock(clock: Clock): void {
  for (const name of ['now', 'monotonic', 'setTimeout', 'clearTimeout'] as const) {
    requireFunction(`clock.${name}`, clock?.[name])
  }
}

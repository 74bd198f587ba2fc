/** Turns bytes into JSON values: fatal about UTF-8, silent about the content, without the keys that reach a prototype. */

import { HooklineError } from './error.ts'
import { dropHostileKeys, mayHoldHostileKeys } from './hostile-keys.ts'

/** A JSON object whose fields are not checked yet. */
export type Json = Record<string, unknown>

/**
 * Parses a body. `__proto__` and `constructor.prototype` are dropped wherever they stand.
 *
 * @throws HooklineError `body_not_json`; its message holds at most the place of the fault, nothing of the body.
 */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // What JSON.parse says quotes the body; only the place may leave here.
    const place = / at position \d+/.exec(String(error))?.[0] ?? ''
    throw notJson(text === '' ? 'The body is empty.' : `The body is not valid JSON${place}.`)
  }
  if (mayHoldHostileKeys(text)) dropHostileKeys(value)
  return value
}

/** Whether this is a JSON object: no array, and not null. */
export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The error for a body that is not the JSON it must be. */
export function notJson(message: string): HooklineError {
  return new HooklineError('body_not_json', message)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw notJson('The body is not valid UTF-8.')
  }
}

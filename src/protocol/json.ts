/** Parses JSON bytes without quoting them in errors, and without the keys that could reach a prototype. */

import { HooklineError, kindOf } from './error.ts'

export type Json = Record<string, unknown>

/** Parses a body. Drops `__proto__` and `constructor.prototype` at any depth. */
export function parseJson(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    // The message of JSON.parse quotes the body, so only the position is kept.
    const position = / at position \d+/.exec(String(error))?.[0] ?? ''
    throw notJson('The body must be valid JSON', `${bytes.length} bytes${position && `, with the fault${position}`}`)
  }
  if (mayHoldHostileKeys(text)) dropHostileKeys(value)
  return value
}

export function parseObject(bytes: Uint8Array): Json {
  return requireObject(parseJson(bytes))
}

export function requireObject(value: unknown): Json {
  if (isObject(value)) return value
  throw notJson('The body must be one JSON object, not a list', kindOf(value))
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function notJson(fault: string, found: string): HooklineError {
  return new HooklineError('body_not_json', `${fault}. Got ${found}. Send one JSON object per request, in UTF-8.`)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw notJson('The body must be valid UTF-8', `${bytes.length} bytes that are not`)
  }
}

/** Checks quickly whether a key of this JSON could be `__proto__` or `prototype`, also when it is written with escapes. */
function mayHoldHostileKeys(text: string): boolean {
  return text.includes('proto') || text.includes('\\u00')
}

/** Drops every `__proto__`, and every `prototype` of a `constructor`, which could reach a prototype when they are copied. */
function dropHostileKeys(value: unknown): void {
  const rest = [value] // A list instead of recursion: JSON nests deeper than the stack.
  while (rest.length > 0) {
    const node = rest.pop()
    if (isObject(node)) {
      if (Object.hasOwn(node, '__proto__')) Reflect.deleteProperty(node, '__proto__')
      if (Object.hasOwn(node, 'constructor') && isObject(node.constructor)) {
        Reflect.deleteProperty(node.constructor, 'prototype')
      }
    }
    for (const child of Array.isArray(node) ? node : isObject(node) ? Object.values(node) : []) rest.push(child)
  }
}

/** Reads untrusted JSON. */

import { type FieldValue, MESSAGE_TYPES, type MessageType } from 'hookline'

export type Json = Record<string, unknown>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns whether the value is an object whose `type` is one of the seven message types. */
export function isMessage(value: unknown): value is Json & { readonly type: MessageType } {
  return isObject(value) && MESSAGE_TYPES.some((type) => type === value.type)
}

/** Parses JSON from any bytes. Returns undefined when they are not JSON. */
export function tryParse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder()

/** Parses a condition such as `properties.order_id=42`. Any value but a JSON scalar is read as text. Without a path, returns undefined. */
export function readField(condition: string): readonly [path: string, value: FieldValue] | undefined {
  const at = condition.indexOf('=')
  if (at < 1) return undefined
  const text = condition.slice(at + 1)
  const value = tryParse(Buffer.from(text))
  const isField = value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)
  return [condition.slice(0, at), isField ? (value as FieldValue) : text]
}

/** JSON that the tools read of strangers. */

import { type FieldValue, MESSAGE_TYPES, type MessageType } from 'hookline'

export type Json = Record<string, unknown>

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether it says that it is one of the seven messages. */
export function isMessage(value: unknown): value is Json & { readonly type: MessageType } {
  return isObject(value) && MESSAGE_TYPES.some((type) => type === value.type)
}

/** Parses JSON, whatever its bytes are. Undefined for what is none. */
export function tryParse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder()

/** Reads the condition of a search, such as `properties.order_id=42`. What is no JSON of a single value is text. Undefined for what has no path. */
export function readField(condition: string): readonly [path: string, value: FieldValue] | undefined {
  const at = condition.indexOf('=')
  if (at < 1) return undefined
  const text = condition.slice(at + 1)
  const value = tryParse(Buffer.from(text))
  const isField = value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)
  return [condition.slice(0, at), isField ? (value as FieldValue) : text]
}

/** JSON that the tools read of strangers. */

import { MESSAGE_TYPES, type MessageType } from 'hookline'

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

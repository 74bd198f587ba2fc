/** Finds one member of an object in JSON, without parsing the rest. */

import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  endOfToken,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
} from './json-tokens.ts'

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]

/**
 * Returns the text of a member of the outermost object. If the member is repeated, the last value counts, as for JSON.parse. The bytes may
 * be invalid JSON.
 */
export function textMember(bytes: Uint8Array, name: string): string | undefined {
  const plainLength = JSON.stringify(name).length
  let found: string | undefined
  let depth = 0
  for (let at = startOf(bytes), end = 0; at < bytes.length; at = end) {
    end = endOfToken(bytes, at)
    const byte = bytes[at]
    if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth++
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
    else if (depth === 1 && byte === QUOTE && bytes[skipSpace(bytes, end)] === COLON) {
      const key = bytes.subarray(at, end)
      if (key.length !== plainLength && !key.includes(BACKSLASH)) continue // A key without escapes and of another length is not the name.
      if (readText(key) !== name) continue
      const start = skipSpace(bytes, skipSpace(bytes, end) + 1)
      found = readText(bytes.subarray(start, endOfToken(bytes, start)))
    }
  }
  return found
}

const utf8 = new TextDecoder()

function readText(token: Uint8Array): string | undefined {
  try {
    const value: unknown = JSON.parse(utf8.decode(token))
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the position of the first token, after any byte order mark. */
function startOf(bytes: Uint8Array): number {
  return skipSpace(bytes, BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte) ? BYTE_ORDER_MARK.length : 0)
}

/** Finds one member of an object in JSON. Does not parse the rest. */

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

/** The text of a member of the outermost object: of several, the last, as JSON.parse has it. The bytes need not be valid. */
export function textMember(bytes: Uint8Array, name: string): string | undefined {
  const { length } = JSON.stringify(name)
  let [found, depth]: [string | undefined, number] = [undefined, 0]
  for (let [at, end] = [startOf(bytes), 0]; at < bytes.length; at = end) {
    end = endOfToken(bytes, at)
    const byte = bytes[at]
    if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth++
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
    else if (depth === 1 && byte === QUOTE && bytes[skipSpace(bytes, end)] === COLON) {
      const key = bytes.subarray(at, end)
      if ((key.length !== length && !key.includes(BACKSLASH)) || readText(key) !== name) continue
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

function startOf(bytes: Uint8Array): number {
  return skipSpace(bytes, BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte) ? 3 : 0)
}

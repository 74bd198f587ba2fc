/** Finds the exact bytes of the elements of a JSON array, and one member of an object. Does not parse the rest. */

import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  endOfToken,
  isSpace,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
} from './json-tokens.ts'

export function isArray(bytes: Uint8Array): boolean {
  return bytes[startOf(bytes)] === OPEN_ARRAY
}

/** The bytes of the first element, which need not be valid; none for what is no array or an empty one. */
export function firstElement(bytes: Uint8Array): Uint8Array {
  return slices(bytes).next().value ?? bytes.subarray(0, 0)
}

/** The bytes of each element, without the white space around it. Reads no further than `most` of them. */
export function elementsOf(bytes: Uint8Array, most: number = Number.POSITIVE_INFINITY): Uint8Array[] {
  const found: Uint8Array[] = []
  for (const slice of slices(bytes)) {
    if (found.length === most) break
    if (slice.length > 0) found.push(slice) // An empty array has one empty slice.
  }
  return found
}

export function trim(bytes: Uint8Array, from = 0, to: number = bytes.length): Uint8Array {
  const start = skipSpace(bytes, from)
  let end = to
  while (end > start && isSpace(bytes[end - 1])) end--
  return bytes.subarray(start, end)
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]

/** Reads each byte once. Of bytes that are no JSON it yields some slices all the same. */
function* slices(bytes: Uint8Array): Generator<Uint8Array, undefined> {
  if (!isArray(bytes)) return
  let end = startOf(bytes)
  do {
    const start = end + 1
    end = endOfElement(bytes, start)
    yield trim(bytes, start, end)
  } while (bytes[end] === COMMA)
}

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

/** The position of the comma or bracket behind an element; the length of bytes that end before. */
function endOfElement(bytes: Uint8Array, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; at = endOfToken(bytes, at)) {
    const byte = bytes[at]
    if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth++
    else if (depth === 0 && (byte === COMMA || byte === CLOSE_ARRAY)) return at
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
  }
  return bytes.length
}

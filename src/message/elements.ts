/** Finds the exact bytes of each element of a JSON array. Does not parse them. */

/** Whether a body begins as a JSON array does: behind a byte order mark and white space. */
export function isArray(bytes: Uint8Array): boolean {
  return bytes[startOf(bytes)] === OPEN_ARRAY
}

/** The bytes of the first element, which need not be valid; none for what is no array or an empty one. */
export function firstElement(bytes: Uint8Array): Uint8Array {
  return slices(bytes).next().value ?? bytes.subarray(0, 0)
}

/**
 * The bytes of each element, without the white space around it.
 *
 * @param bytes A valid JSON array: `JSON.parse` takes it.
 */
export function elementsOf(bytes: Uint8Array): Uint8Array[] {
  return [...slices(bytes)].filter(({ length }) => length > 0) // An empty array has one empty slice.
}

const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const [COMMA, QUOTE, BACKSLASH] = [0x2c, 0x22, 0x5c]
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

function startOf(bytes: Uint8Array): number {
  return skipSpace(bytes, BYTE_ORDER_MARK.every((byte, index) => bytes[index] === byte) ? 3 : 0)
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let index = from
  while (isSpace(bytes[index])) index++
  return index
}

/** JSON knows four (RFC 8259, section 2). */
function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** The position of the comma or bracket behind an element; the length of bytes that end before. */
function endOfElement(bytes: Uint8Array, start: number): number {
  let depth = 0
  for (let index = start; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === QUOTE) index = endOfString(bytes, index)
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth++
    else if (depth === 0 && (byte === COMMA || byte === CLOSE_ARRAY)) return index
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
  }
  return bytes.length
}

/** The position of the quote that ends a string: an even number of backslashes stands before it. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let first = end
    while (bytes[first - 1] === BACKSLASH) first--
    if ((end - first) % 2 === 0) return end
  }
  return bytes.length
}

/** The bytes without the white space around them. */
export function trim(bytes: Uint8Array, from = 0, to: number = bytes.length): Uint8Array {
  const start = skipSpace(bytes, from)
  let end = to
  while (end > start && isSpace(bytes[end - 1])) end--
  return bytes.subarray(start, end)
}

/** Finds where a token of JSON ends, in bytes. Accepts bytes that are not JSON, too. */

/** Returns the position after the token that starts here: a string, a number, a literal or a single other byte. */
export function endOfToken(bytes: Uint8Array, start: number): number {
  if (bytes[start] === QUOTE) return endOfString(bytes, start)
  let end = start
  while (isPlain(bytes[end])) end++
  return end === start ? start + 1 : end
}

export function skipSpace(bytes: Uint8Array, from: number): number {
  let index = from
  while (isSpace(bytes[index])) index++
  return index
}

/** Returns whether a byte is white space: JSON has four kinds (RFC 8259, section 2). */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

export const OPEN_ARRAY = 0x5b
export const CLOSE_ARRAY = 0x5d
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d
export const COMMA = 0x2c
export const COLON = 0x3a
export const QUOTE = 0x22
export const BACKSLASH = 0x5c

/** Returns whether a byte may be in a number or a literal. */
function isPlain(byte: number | undefined): boolean {
  if (byte === undefined || byte === QUOTE || byte === COLON || byte === COMMA || isSpace(byte)) return false
  return byte !== OPEN_ARRAY && byte !== CLOSE_ARRAY && byte !== OPEN_OBJECT && byte !== CLOSE_OBJECT
}

/** Returns the position after the quote that ends a string: the first quote after an even number of backslashes. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let quote = bytes.indexOf(QUOTE, start + 1); quote !== -1; quote = bytes.indexOf(QUOTE, quote + 1)) {
    let first = quote
    while (bytes[first - 1] === BACKSLASH) first--
    if ((quote - first) % 2 === 0) return quote + 1
  }
  return bytes.length
}

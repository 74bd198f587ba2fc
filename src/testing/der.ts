/** Writes ASN.1 values in DER (ITU-T X.690): the types that a certificate needs. */

/** Writes a value: the tag, the length of the content, and the content. */
export function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(content)
  return Buffer.concat([Buffer.from([tag]), lengthOf(bytes), bytes])
}

function lengthOf({ length }: Buffer): Buffer {
  if (length < 0x80) return Buffer.from([length])
  if (length < 0x100) return Buffer.from([0x81, length])
  return Buffer.from([0x82, length >> 8, length & 0xff])
}

export function sequence(...content: readonly Uint8Array[]): Buffer {
  return der(0x30, ...content)
}

/** Writes an integer, given as a number of one byte or as the bytes of a longer number. The first bit is the sign. */
export function integer(value: number | Uint8Array): Buffer {
  return der(0x02, typeof value === 'number' ? Buffer.from([value]) : value)
}

export function octetString(bytes: Uint8Array): Buffer {
  return der(0x04, bytes)
}

export function utf8String(text: string): Buffer {
  return der(0x0c, Buffer.from(text))
}

export function setOf(content: Uint8Array): Buffer {
  return der(0x31, content)
}

/** Writes a primitive value with this number in place of its own tag, such as `[2] IMPLICIT`. */
export function implicit(number: number, bytes: Uint8Array): Buffer {
  return der(0x80 + number, bytes)
}

/** Writes a value inside a field with this number, such as `[3] EXPLICIT`. */
export function explicit(number: number, content: Uint8Array): Buffer {
  return der(0xa0 + number, content)
}

export const TRUE: Buffer = der(0x01, Buffer.from([0xff]))

export function bitString(bytes: Uint8Array, unusedBits = 0): Buffer {
  return der(0x03, Buffer.from([unusedBits]), bytes)
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return der(0x06, Buffer.from([first * 40 + second, ...rest].flatMap(base128)))
}

/** Writes a number with seven bits per byte. All bytes but the last have the eighth bit set. */
function base128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift((left & 0x7f) | 0x80)
  return bytes
}

/** Writes a time before the year 2050, for example '20491231235959Z'. DER writes such a year with two digits. */
export function utcTime(text: string): Buffer {
  return der(0x17, Buffer.from(text.slice(2)))
}

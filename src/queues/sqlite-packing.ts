/** Bytes between threads: all of a message lie in one buffer, which changes hands without another copy. */

/** A message with its bytes taken out: each is a slot in their place, in the order in which they lie in the buffer. */
export interface Packed<T> {
  readonly value: T
  readonly buffer: ArrayBuffer
}

/** Copies all bytes into one buffer: to send bytes as they are would copy the whole pool that they are a view of. */
export function pack(parts: readonly Uint8Array[]): ArrayBuffer {
  let length = 0
  for (const part of parts) length += part.byteLength
  const whole = new Uint8Array(length)
  let offset = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.byteLength
  }
  return whole.buffer
}

/** Reads bytes out of a buffer, one length after the other. */
export function unpack(buffer: ArrayBuffer): (length: number) => Uint8Array {
  let offset = 0
  return (length) => {
    offset += length
    return new Uint8Array(buffer, offset - length, length)
  }
}

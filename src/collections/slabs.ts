/** Memory for the bytes of many messages: a few large pieces, which are used again when their messages are gone. */

/** One piece. */
export interface Slab {
  readonly bytes: Uint8Array
  used: number
  /** How many messages are in it. */
  count: number
}

const SIZE = 65_536
/** How many empty ones wait to be used again. */
const MOST_FREE = 8

let current: Slab = createSlab()
const free: Slab[] = []

function createSlab(): Slab {
  return { bytes: new Uint8Array(SIZE), used: 0, count: 0 }
}

/** A slab with room for so many bytes, at most a quarter of it. */
export function openSlab(room: number): Slab {
  if (current.used + room <= SIZE) return current
  if (current.count === 0) current.used = 0
  else current = free.pop() ?? createSlab()
  return current
}

/** Takes room that was written to, up to `end`. */
export function takeRoom(slab: Slab, end: number): void {
  slab.used = end
  slab.count += 1
}

/** Gives room back, cleared. */
export function freeRoom(slab: Slab, start: number, end: number): void {
  slab.bytes.fill(0, start, end)
  slab.count -= 1
  if (slab.count > 0 || slab === current) return
  slab.used = 0
  if (free.length < MOST_FREE) free.push(slab)
}

/** Writes a text and a zero. Returns where it ends: behind `most` when it is too long, or not Latin-1 without zeros. */
export function writeText(bytes: Uint8Array, text: string, start: number, most: number): number {
  const { length } = text
  if (start + length >= most) return most + 1
  for (let index = 0; index < length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === 0 || code > 255) return most + 1
    bytes[start + index] = code
  }
  bytes[start + length] = 0
  return start + length + 1
}

/** The texts that were written. */
export function readTexts({ bytes }: Slab, start: number, end: number): string[] {
  return Buffer.from(bytes.buffer).toString('latin1', start, end).split('\0').slice(0, -1)
}

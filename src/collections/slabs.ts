/** Memory for the bytes of many messages: a few large pieces, which are used again when their messages are gone. */

/** One piece. */
export interface Slab {
  readonly bytes: Buffer
  /** The same memory. */
  readonly numbers: Float64Array
  readonly lengths: Uint16Array
  /** A multiple of 8. */
  used: number
  /** How many messages are in it. */
  count: number
}

const SIZE = 65_536
/** The most bytes of one message. */
export const MOST_ROOM: number = SIZE / 4
/** How many empty ones wait to be used again. */
const MOST_FREE = 8

function createSlab(): Slab {
  const bytes = Buffer.alloc(SIZE)
  const { buffer } = bytes
  return { bytes, numbers: new Float64Array(buffer), lengths: new Uint16Array(buffer), used: 0, count: 0 }
}

/** The slabs of messages that go about as soon as each other: a slab stays as long as any of its messages. */
export class Slabs {
  #current: Slab | undefined
  readonly #free: Slab[] = []

  /** A slab with room for so many bytes, at most {@link MOST_ROOM}, behind those that are used. */
  open(room: number): Slab {
    if (this.#current === undefined || this.#current.used + room > SIZE)
      this.#current = this.#free.pop() ?? createSlab()
    return this.#current
  }

  /** Takes room that was written to, up to `end`. */
  take(slab: Slab, end: number): void {
    slab.used = (end + 7) & ~7
    slab.count += 1
  }

  /** Gives the room of one message back. It is cleared with the last one of its slab. */
  release(slab: Slab): void {
    slab.count -= 1
    if (slab.count > 0) return
    slab.bytes.fill(0, 0, slab.used)
    slab.used = 0
    if (slab !== this.#current && this.#free.length < MOST_FREE) this.#free.push(slab)
  }
}

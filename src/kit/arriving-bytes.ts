/** Collects bytes that arrive in pieces. Small pieces are joined, because a list of single bytes would take 40 times their size. */

export class ArrivingBytes {
  size = 0
  readonly #pieces: Uint8Array[] = []
  #joined: Uint8Array = NOTHING
  #joinedSize = 0

  add(piece: Uint8Array): void {
    if (this.#pieces.length < FEW || piece.length >= SMALL) {
      this.#endJoining()
      // A piece from HTTP/2 may be a small part of a buffer, and would keep the whole buffer alive.
      const isSparse = piece.buffer.byteLength > 2 * piece.byteLength
      this.#pieces.push(isSparse ? new Uint8Array(piece) : piece)
    } else {
      if (this.#joinedSize + piece.length > this.#joined.length) {
        this.#endJoining()
        this.#joined = Buffer.allocUnsafeSlow(2 * SMALL)
      }
      this.#joined.set(piece, this.#joinedSize)
      this.#joinedSize += piece.length
    }
    this.size += piece.length
  }

  /** Returns all bytes, and removes them from this object. A single piece is returned without being copied. */
  take(): Buffer {
    this.#endJoining()
    const [first = NOTHING, ...others] = this.#pieces.splice(0)
    if (others.length > 0) return Buffer.concat([first, ...others], this.size)
    return Buffer.from(first.buffer, first.byteOffset, first.byteLength)
  }

  #endJoining(): void {
    if (this.#joinedSize > 0) this.#pieces.push(this.#joined.subarray(0, this.#joinedSize))
    this.#joined = NOTHING
    this.#joinedSize = 0
  }
}

const NOTHING = new Uint8Array()

/** How many of the first pieces are not joined, because joining so few costs more than it saves. */
const FEW = 8
/** A later piece is joined if it has fewer bytes than this. */
const SMALL = 2048

/** Bytes that arrive in pieces. Small pieces are joined: a list of single bytes holds forty times its size. */

export class ArrivingBytes {
  size = 0
  readonly #pieces: Uint8Array[] = []
  #room: Uint8Array = NOTHING
  #joined = 0

  /** Returns '' for readers of text, to which it is a decoder. */
  add(piece: Uint8Array): '' {
    if (this.#pieces.length < FEW || piece.length >= SMALL) {
      this.#endJoining()
      const isSparse = piece.buffer.byteLength > 2 * piece.byteLength // As from HTTP/2: it would hold the whole buffer.
      this.#pieces.push(isSparse ? new Uint8Array(piece) : piece)
    } else {
      if (this.#joined + piece.length > this.#room.length) {
        this.#endJoining()
        this.#room = Buffer.allocUnsafeSlow(2 * SMALL)
      }
      this.#room.set(piece, this.#joined)
      this.#joined += piece.length
    }
    this.size += piece.length
    return ''
  }

  /** Gives all of it, and keeps nothing. One piece is not copied again. */
  take(): Buffer {
    this.#endJoining()
    const [first = NOTHING, ...others] = this.#pieces.splice(0)
    if (others.length > 0) return Buffer.concat([first, ...others], this.size)
    return Buffer.from(first.buffer, first.byteOffset, first.byteLength)
  }

  #endJoining(): void {
    if (this.#joined > 0) this.#pieces.push(this.#room.subarray(0, this.#joined))
    this.#room = NOTHING
    this.#joined = 0
  }
}

const NOTHING = new Uint8Array()

/** The first pieces are kept as they are: joining so few costs more than it saves. */
const FEW = 8
/** Further pieces of fewer bytes are joined. */
const SMALL = 2048

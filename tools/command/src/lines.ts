/** Splits a stream of bytes into lines. */

interface Line {
  readonly number: number
  readonly bytes: Buffer | undefined
  /** The number of bytes from the start of the stream to the end of this line. */
  readonly end: number
}

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/** Splits a stream into lines. Omits the `bytes` of a line longer than `limit` bytes. Drops a byte order mark at the start. */
export async function* splitLines(stream: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line> {
  let rest: Buffer = Buffer.alloc(0)
  let [number, read] = [0, 0]

  const toLine = (part: Buffer, end: number): Line => {
    const bytes = Buffer.concat([rest, part])
    rest = Buffer.alloc(0)
    number += 1
    const start = number === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0
    const line = bytes.subarray(start, bytes.at(-1) === CARRIAGE_RETURN ? -1 : undefined)
    return { number, bytes: bytes.length > limit ? undefined : line, end }
  }

  for await (const chunk of stream) {
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      yield toLine(chunk.subarray(from, at), read + at + 1)
      from = at + 1
    }
    if (rest.length <= limit) rest = Buffer.concat([rest, chunk.subarray(from)]).subarray(0, limit + 1)
    read += chunk.length
  }
  if (rest.length > 0) yield toLine(Buffer.alloc(0), read)
}

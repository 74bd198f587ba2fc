/** Splits a stream into lines, and holds no more than one of them. */

/** A line without its line break. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** Undefined for a line over the limit. */
  readonly bytes: Buffer | undefined
  /** How many bytes of the stream end with it. */
  readonly end: number
}

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/**
 * Splits it. A byte order mark at its beginning is of no line.
 *
 * @param limit The most bytes of a line.
 */
export async function* splitLines(stream: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line> {
  let parts: Buffer[] = []
  let [number, size, end] = [0, 0, 0]

  const add = (part: Buffer): void => {
    size += part.length
    end += part.length
    if (size <= limit) parts.push(part)
    else parts = []
  }
  const finish = (): Line => {
    const whole = size > limit ? undefined : withoutReturn(Buffer.concat(parts, size))
    const bytes = number === 0 && whole?.subarray(0, 3).equals(BYTE_ORDER_MARK) ? whole.subarray(3) : whole
    number += 1
    parts = []
    size = 0
    return { number, bytes, end }
  }

  for await (const chunk of stream) {
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, from)) {
      add(chunk.subarray(from, at))
      from = at + 1
      end += 1
      yield finish()
    }
    if (from < chunk.length) add(chunk.subarray(from))
  }
  if (size > 0) yield finish()
}

function withoutReturn(bytes: Buffer): Buffer {
  return bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes
}

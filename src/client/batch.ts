/** The body of a batch request, joined from calls that are JSON already. */

import type { Fifo } from '../queues/fifo.ts'
import type { Entry } from './entry.ts'

/**
 * Most bytes of a batch request ("Go client library", Limits: 500 KB). A KB is 1000 bytes to some and 1024 to others; this
 * is under the limit of both.
 */
const BATCH_BYTES = 500_000

const OPEN = '{"batch":['
const CLOSE = '],"sentAt":"'
const END = '"}'
const TIMESTAMP = '2026-01-15T09:30:00.000Z'
/** A comma follows each call but the last. */
const AROUND = OPEN.length + CLOSE.length + TIMESTAMP.length + END.length - 1

/** Takes the entries of the next batch: the first ones, no more than `most`, and no more than fit. */
export function takeBatch(waiting: Fifo<Entry>, most: number): readonly Entry[] {
  const entries: Entry[] = []
  let bytes = AROUND
  for (let next = waiting.peek(); next !== undefined && entries.length < most; next = waiting.peek()) {
    bytes += next.bytes + 1
    if (bytes > BATCH_BYTES) break
    waiting.shift()
    entries.push(next)
  }
  return entries
}

/** The body, written at this time, in milliseconds since the epoch. */
export function writeBatch(entries: readonly Entry[], now: number): Buffer {
  const calls = entries.map(({ text }) => text).join(',')
  return Buffer.from(`${OPEN}${calls}${CLOSE}${new Date(now).toISOString()}${END}`)
}

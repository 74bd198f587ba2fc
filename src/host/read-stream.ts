/** Reads the body of a request from a Node.js stream, using raw-body. */

import type { Readable } from 'node:stream'
import getRawBody, { type RawBodyError } from 'raw-body'
import { ArrivingBytes } from '../kit/arriving-bytes.ts'
import { DISCARD_LIMIT, DISCARD_MS } from '../protocol/limits.ts'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from './body.ts'

/**
 * A body that is being read. `stopReading` ends the reading early, with the error `body_aborted`. It is undefined once
 * the reading has ended.
 */
export interface Reading {
  stopReading: (() => void) | undefined
}

/**
 * Reads a stream to its end. If the body is refused, reads and drops the rest of the stream. If the body is larger than the limit, reads
 * and drops at most DISCARD_LIMIT bytes of the rest.
 *
 * @param limit The maximum size of the body, in bytes.
 * @param length The header `content-length`.
 */
export async function readStream(
  stream: Readable & { readonly aborted?: boolean },
  limit: number,
  length: string | undefined,
  reading: Reading = { stopReading: undefined },
): Promise<EndpointBody & { readonly bytes: Buffer }> {
  // raw-body stops reading when its stream closes. The stream of a request must stay open for the answer, so `stopReading` calls raw-body's
  // listener for the event `close` without closing the stream.
  const keepCloseListener = (event: string, listener: () => void): void => {
    if (event === 'close') reading.stopReading = listener
  }
  stream.on('error', ignore).on('newListener', keepCloseListener)
  const bytes = new ArrivingBytes()
  // With a decoder that returns no text, raw-body does not hold a list of all pieces.
  const decoder = {
    write(chunk: Uint8Array): string {
      bytes.add(chunk)
      return ''
    },
    end: () => '',
  }
  const completed = getRawBody(stream, { limit, length: length ?? null, encoding: true, decoder: () => decoder })
  stream.off('newListener', keepCloseListener).resume() // The stream may have been paused before.
  try {
    await completed
    // An HTTP/2 request that is cancelled and has no length ends as if it were complete.
    if (stream.aborted !== true) return { bytes: bytes.take(), source: 'stream' }
  } catch (error) {
    stream.resume() // raw-body has paused the stream. Without this call, nothing more would be read from the connection.
    const { type }: Partial<RawBodyError> = error ?? {}
    if (type === 'stream.encoding.set') throw bodyConsumed('a stream with an encoding')
    if (type === 'entity.too.large') {
      await discard(stream)
      throw bodyTooLarge(limit)
    }
  } finally {
    reading.stopReading = undefined // Otherwise, a listener of the request would keep the bytes.
  }
  throw bodyAborted()
}

/** Ignores errors of a stream. An error of a stream without a listener would end the process. */
function ignore(): void {}

/**
 * Reads and drops the rest of a body, at most DISCARD_LIMIT bytes and for at most DISCARD_MS. Otherwise, a sender that is still writing
 * when the connection closes would get a reset instead of the answer.
 */
function discard(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    let left = DISCARD_LIMIT
    const drop = (chunk: Uint8Array): void => {
      left -= chunk.length
      if (left < 0) stop()
    }
    const stop = (): void => {
      clearTimeout(timer)
      stream.off('data', drop).off('end', stop).off('close', stop).pause()
      resolve()
    }
    const timer = setTimeout(stop, DISCARD_MS)
    if (stream.readableEnded || stream.destroyed) stop()
    else stream.on('data', drop).on('end', stop).on('close', stop).resume()
  })
}

/** Reads the body of a request from a stream of Node, with raw-body. */

import type { Readable } from 'node:stream'
import getRawBody, { type RawBodyError } from 'raw-body'
import { ArrivingBytes } from '../kit/arriving-bytes.ts'
import { DISCARD_LIMIT, DISCARD_MS } from '../protocol/limits.ts'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from './body.ts'

export interface Reading {
  stopReading: (() => void) | undefined
}

/**
 * Reads a stream to its end. The rest of a body that is refused is dropped as it arrives; of one over the limit, a
 * little of it.
 */
export async function readStream(
  stream: Readable & { readonly aborted?: boolean },
  limit: number,
  length: string | undefined,
  reading: Reading = { stopReading: undefined },
): Promise<EndpointBody & { readonly bytes: Buffer }> {
  // raw-body stops when its stream closes. That of a request stays open for the answer, so raw-body's listener is called alone.
  const note = (event: string, listener: () => void): void => {
    if (event === 'close') reading.stopReading = listener
  }
  stream.on('error', ignore).on('newListener', note)
  const bytes = new ArrivingBytes()
  const keep = { write: (chunk: Uint8Array) => bytes.add(chunk), end: () => '' } // By itself, raw-body keeps a list of pieces.
  const read = getRawBody(stream, { limit, length: length ?? null, encoding: true, decoder: () => keep })
  stream.off('newListener', note).resume() // It may have been paused before.
  try {
    await read
    // A request of HTTP/2 that is cancelled and has no length ends as if it were complete.
    if (stream.aborted !== true) return { bytes: bytes.take(), source: 'stream' }
  } catch (error) {
    stream.resume() // raw-body has paused it: nothing more would be read of its connection.
    const { type } = error as RawBodyError
    if (type === 'stream.encoding.set') throw bodyConsumed('a stream with an encoding')
    if (type === 'entity.too.large') {
      await discard(stream)
      throw bodyTooLarge(limit)
    }
  } finally {
    reading.stopReading = undefined // It would hold the bytes for as long as the request is held.
  }
  throw bodyAborted()
}

/** A stream may fail when nothing reads it any more. */
function ignore(): void {}

/**
 * Reads and discards the rest of a body, up to a number of bytes and for a short time: a sender that is still writing
 * when the connection closes sees a reset and not the answer.
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

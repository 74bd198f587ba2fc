/** Where the bytes are: the stream while it is unread, else what a parser mounted earlier left. */

import type { Readable } from 'node:stream'
import { isUint8Array } from 'node:util/types'
import getRawBody, { type Options, type RawBodyError } from 'raw-body'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../src/protocol/body.ts'
import type { HooklineError } from '../src/protocol/error.ts'
import { DISCARD_LIMIT } from '../src/protocol/limits.ts'

/** Where a parser that ran before leaves what it read. */
export interface ParsedBody {
  readonly rawBody?: unknown
  readonly body?: unknown
}

/** Whether nothing has come out of the stream yet: whoever listens now gets all of it. */
export function isUnread(stream: Readable): boolean {
  return stream.readableDidRead === false && !stream.readableEnded // An empty body ends without being read.
}

/**
 * Reads a stream to its end.
 *
 * @param length What `content-length` says, to notice a body that was cut off.
 * @throws HooklineError (as a rejection) `body_too_large`, `body_aborted` or `body_consumed`.
 */
export async function readStream(stream: Readable, limit: number, length: Options['length']): Promise<EndpointBody> {
  try {
    return { bytes: await getRawBody(stream, { limit, length: length ?? null }), source: 'stream' }
  } catch (error) {
    const failure = translate(error as RawBodyError, limit)
    if (failure.code === 'body_too_large') await discard(stream)
    throw failure
  }
}

/**
 * Finds the body that a parser has read, the most faithful copy first.
 *
 * @throws HooklineError `body_too_large` or `body_consumed`.
 */
export function findParsed({ rawBody, body }: ParsedBody, limit: number): EndpointBody {
  const found = find(rawBody, body)
  if (found.bytes.length > limit) throw bodyTooLarge(limit)
  return found
}

function find(rawBody: unknown, body: unknown): EndpointBody {
  if (isUint8Array(rawBody)) return { bytes: rawBody, source: 'rawBody' }
  if (typeof rawBody === 'string') return { bytes: Buffer.from(rawBody), source: 'rawBody-text' }
  if (isUint8Array(body)) return { bytes: body, source: 'body' }
  if (typeof body === 'string') return { bytes: Buffer.from(body), source: 'body-text' }
  return { bytes: Buffer.from(serialise(body)), source: 'reserialised' }
}

function serialise(body: unknown): string {
  try {
    const text = JSON.stringify(body)
    if (text !== undefined) return text
  } catch {} // Nested deeper than the stack: JSON.parse takes what JSON.stringify does not.
  throw bodyConsumed('nothing of it was left')
}

function translate(error: RawBodyError, limit: number): HooklineError {
  if (error.type === 'entity.too.large') return bodyTooLarge(limit)
  if (error.type === 'stream.encoding.set') return bodyConsumed('an encoding was set on the stream')
  return bodyAborted()
}

/**
 * Reads on and drops what it reads, up to a bound: a sender that is still writing when the connection closes sees a
 * reset and not our answer.
 */
function discard(stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    let left = DISCARD_LIMIT
    const drop = (chunk: Uint8Array): void => {
      left -= chunk.length
      if (left < 0) stop()
    }
    const stop = (): void => {
      stream.off('data', drop).off('end', stop).off('close', stop).pause()
      resolve()
    }
    if (stream.readableEnded || stream.destroyed) return resolve()
    stream.on('data', drop).on('end', stop).on('close', stop).resume()
  })
}

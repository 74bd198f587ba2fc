/** Where the bytes are: the stream while it is unread, else what a parser mounted earlier left. */

import type { Readable } from 'node:stream'
import { isUint8Array } from 'node:util/types'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../src/protocol/body.ts'
import { DISCARD_LIMIT, DISCARD_MS } from '../src/protocol/limits.ts'

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
 * Reads a stream to its end. Hot path: raw-body does the same, but its generality costs a
 * server about 5 % of its processor time (bench/README.md).
 *
 * @param length What `content-length` says, to notice a body that was cut off.
 * @throws HooklineError (as a rejection) `body_too_large`, `body_aborted` or `body_consumed`.
 */
export function readStream(stream: Readable, limit: number, length: string | undefined): Promise<EndpointBody> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = []
    let size = 0
    const take = (chunk: Uint8Array): void => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else refuse()
    }
    const finish = (): void => {
      stream.off('close', abort) // An error with its stack is costly, and every request closes.
      if (length !== undefined && size !== Number(length)) abort()
      else
        resolve({
          bytes: chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, size),
          source: 'stream',
        })
    }
    const abort = (): void => reject(bodyAborted())
    const refuse = (): void => {
      stream.off('data', take).off('end', finish).off('close', abort)
      void discard(stream).then(() => reject(bodyTooLarge(limit)))
    }

    if (stream.readableEncoding !== null) reject(bodyConsumed('an encoding was set on the stream'))
    else if (Number(length) > limit) refuse()
    else if (stream.destroyed) abort()
    else stream.on('data', take).on('end', finish).on('error', abort).on('close', abort).resume()
  })
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

/**
 * Reads on and drops what it reads, up to a bound and for a moment: a sender that is still writing when the connection
 * closes sees a reset and not our answer.
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

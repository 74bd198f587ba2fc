/** Where the bytes of a body are: in the stream while it is unread, else in what a body parser mounted earlier left. */

import type { Readable } from 'node:stream'
import { isUint8Array } from 'node:util/types'
import { bodyConsumed, bodyTooLarge, type EndpointBody } from '../../src/http/body.ts'

/** Where a body parser that ran earlier leaves what it read. */
export interface ParsedBody {
  readonly rawBody?: unknown
  readonly body?: unknown
}

/** Whether no data was read from the stream, so that a reader gets the whole body. */
export function isUnread(stream: Readable): boolean {
  return stream.readableDidRead === false && !stream.readableEnded // An empty body ends without being read.
}

/**
 * Reads a body that has arrived whole, without a promise or listeners. Returns undefined for any other, of which it
 * reads nothing.
 */
export function readArrived(stream: Readable, limit: number, length: string | undefined): EndpointBody | undefined {
  const { readableLength, readableFlowing, readableEncoding } = stream
  if (readableLength === 0 || readableLength !== Number(length) || readableLength > limit) return undefined
  if (readableFlowing === true || readableEncoding !== null) return undefined
  return { bytes: stream.read(), source: 'stream' }
}

export function findParsed({ rawBody, body }: ParsedBody, limit: number): EndpointBody {
  const copy = findCopy(rawBody, body)
  if (copy.bytes.length > limit) throw bodyTooLarge(limit)
  return copy
}

function findCopy(rawBody: unknown, body: unknown): EndpointBody {
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
  } catch {} // Nested too deep: JSON.parse accepts more levels than JSON.stringify.
  throw bodyConsumed('no copy of it')
}

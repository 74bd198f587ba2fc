/** Passes a request of node:http or node:http2 to an endpoint, for every framework that builds on these modules. */

import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Readable } from 'node:stream'
import { isUint8Array } from 'node:util/types'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../../src/host/body.ts'
import type { EndpointAnswer, EndpointHeaders, EndpointRequest } from '../../src/host/endpoint.ts'
import { type Reading, readStream } from '../../src/host/read-stream.ts'
import { kindOf } from '../../src/protocol/error.ts'
import { DISCARD_MS } from '../../src/protocol/limits.ts'
import type { Handle } from './mount.ts'
import type { NodeOutgoing } from './node-answer.ts'

/** A request of node:http, or of node:http2 through its compatible API. */
export type NodeIncoming = (IncomingMessage | Http2ServerRequest) & {
  /** The URL before a router made it relative, as Express, Connect and middie keep it. */
  readonly originalUrl?: string
}

/** The properties of a request in which a body parser leaves the body. */
export interface ParsedBody {
  readonly rawBody?: unknown
  readonly body?: unknown
}

export class NodeRequest implements EndpointRequest, Reading {
  path: string
  stopReading: (() => void) | undefined
  readonly query: string
  readonly method: string
  readonly headers: EndpointHeaders
  readonly rawHeaders: readonly string[] | undefined
  readonly #incoming: NodeIncoming
  readonly #outgoing: NodeOutgoing
  readonly #parsed: ParsedBody
  readonly #stream: Readable

  /**
   * @param url The URL, relative to where the framework mounted the adapter.
   * @param parsed The object in which the framework keeps the body that a body parser read.
   * @param stream The stream from which the framework reads the body, when that is not the request itself.
   */
  constructor(
    incoming: NodeIncoming,
    outgoing: NodeOutgoing,
    url: string,
    parsed: ParsedBody,
    stream: Readable = incoming,
  ) {
    const target = targetOf(url)
    const end = target.indexOf('?')
    this.path = end === -1 ? target : target.slice(0, end)
    this.query = end === -1 ? '' : target.slice(end + 1)
    this.method = incoming.method ?? ''
    this.headers = incoming.headers
    this.rawHeaders = incoming.rawHeaders
    this.#incoming = incoming
    this.#outgoing = outgoing
    this.#parsed = parsed
    this.#stream = stream
  }

  get originalUrl(): string | undefined {
    return this.#incoming.originalUrl
  }

  get remoteAddress(): string | undefined {
    return this.#incoming.socket?.remoteAddress
  }

  readBody(limit: number): EndpointBody | Promise<EndpointBody> {
    const stream = this.#stream
    if (!isUnread(stream)) return findBodyLeftByParser(this.#parsed, this.#incoming, limit)
    const length = stream === this.#incoming ? this.#incoming.headers['content-length'] : undefined
    return readArrived(stream, limit, length) ?? readStream(stream, limit, length, this)
  }

  /**
   * Answers the request in the next tick. Hot path: node:http emits a request before it parses the rest of the chunk,
   * so by the next tick, a small body has arrived and can be read without waiting (bench/METHOD.md). If a listener has
   * already started to read the body, the method answers immediately, because a later reader would miss the beginning.
   *
   * @param done Receives the answer; undefined for a request that is not for the endpoint.
   * @param fail Receives an error that the endpoint or `done` threw. `done` throws, for example, if the response of a test lacks methods.
   */
  answerWith(handle: Handle, done: (answer: EndpointAnswer | undefined) => void, fail: (error: unknown) => void): void {
    if (this.#stream.readableFlowing === true) answerNow(this, handle, done, fail)
    else process.nextTick(answerNow, this, handle, done, fail)
  }

  /** Ends a request whose answer is known: stops reading a body that is still arriving, and keeps none of it. */
  discardBody(): void {
    this.stopReading?.()
    const [incoming, outgoing] = [this.#incoming, this.#outgoing]
    if (!('stream' in outgoing) || incoming.readableEnded || outgoing.stream.endAfterHeaders) return
    // HTTP/1 closes the connection. HTTP/2 keeps a stream whose body was not read to its end, and buffers the rest of the body until the
    // stream is closed. The stream is closed a little later, because a client that is still writing may mistake the reset for the answer.
    const { stream } = outgoing
    const closeLater = (): unknown => setTimeout(close, DISCARD_MS).unref()
    const close = (): unknown => (stream.writableEnded ? stream.destroy() : closeLater())
    closeLater()
  }
}

function answerNow(
  request: NodeRequest,
  handle: Handle,
  done: (answer: EndpointAnswer | undefined) => void,
  fail: (error: unknown) => void,
): void {
  const respond = (answer: EndpointAnswer): void => {
    request.discardBody()
    done(answer)
  }
  let answered: ReturnType<Handle>
  try {
    answered = handle(request)
  } catch (error) {
    fail(error)
    return
  }
  if (answered === undefined) done(undefined)
  else answered.then(respond).catch(fail)
}

/**
 * Returns the path and the query of a request target. The target may be a whole URL, as in a request to a proxy (absolute form, RFC 9112,
 * section 3.2.2).
 */
function targetOf(url: string): string {
  return url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*\/?/i, '/')
}

/** Returns whether a reader would get the whole body, because no other code has read, ended or destroyed the stream. */
function isUnread(stream: Readable): boolean {
  return stream.readable && stream.readableDidRead === false
}

/**
 * Returns whether the client disconnected before the whole body had arrived. On HTTP/1, `aborted` is also set if code destroys a complete
 * request.
 */
function hasDisconnected({ aborted, complete, httpVersionMajor }: NodeIncoming): boolean {
  return aborted && (httpVersionMajor !== 1 || !complete)
}

/**
 * Reads a body that has arrived completely, without a promise or a listener. Returns undefined for any other body, and
 * leaves it unread.
 */
export function readArrived(stream: Readable, limit: number, length: string | undefined): EndpointBody | undefined {
  const { readableLength, readableFlowing, readableEncoding } = stream
  if (readableLength === 0 || readableLength !== Number(length) || readableLength > limit) return undefined
  if (readableFlowing === true || readableEncoding !== null) return undefined
  return { bytes: stream.read(), source: 'stream' }
}

/**
 * Finds the copy of a body that was already read.
 *
 * @param parsed The object in which the framework keeps the copy.
 * @param incoming The request, in which a serverless wrapper around the framework may keep the copy.
 */
function findBodyLeftByParser(parsed: ParsedBody, incoming: NodeIncoming & ParsedBody, limit: number): EndpointBody {
  const rawBody = parsed.rawBody ?? incoming.rawBody
  const body = parsed.body ?? incoming.body
  const hasRawCopy = [rawBody, body].some((copy) => isUint8Array(copy) || typeof copy === 'string')
  // Only bytes or text prove that the body was read to its end: a parser may set an empty object before it reads.
  if (!hasRawCopy && hasDisconnected(incoming)) throw bodyAborted()
  const copy = chooseCopy(rawBody, body)
  if (copy.bytes.length > limit) throw bodyTooLarge(limit)
  return copy
}

/** Chooses the copy that is closest to the bytes that were sent. */
function chooseCopy(rawBody: unknown, body: unknown): EndpointBody {
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
  } catch {} // JSON.stringify may throw, because it accepts fewer nested levels than JSON.parse.
  throw bodyConsumed(kindOf(body))
}

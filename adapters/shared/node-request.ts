/** A request of node:http or node:http2 as an endpoint sees it, for every framework that stands on them. */

import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { Readable } from 'node:stream'
import { isUint8Array } from 'node:util/types'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../../src/host/body.ts'
import type { EndpointAnswer, EndpointHeaders, EndpointRequest } from '../../src/host/endpoint.ts'
import { type Reading, readStream } from '../../src/host/read-stream.ts'
import { DISCARD_MS } from '../../src/protocol/limits.ts'
import type { Handle } from './mount.ts'
import type { NodeOutgoing } from './node-answer.ts'

/** A request of node:http, or of node:http2 through its compatible API. */
export type NodeIncoming = (IncomingMessage | Http2ServerRequest) & {
  /** The URL before a router made it relative, as Express, Connect and middie keep it. */
  readonly originalUrl?: string
}

/** Where a body parser that ran earlier leaves what it read. */
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
   * @param url Relative to where the framework mounted the adapter.
   * @param parsed Where the framework keeps what a body parser read.
   * @param stream Where the framework reads the body from, when that is not the request itself.
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
    if (!isUnread(stream)) return findParsed(this.#parsed, this.#incoming, limit)
    const length = stream === this.#incoming ? this.#incoming.headers['content-length'] : undefined
    return readArrived(stream, limit, length) ?? readStream(stream, limit, length, this)
  }

  /**
   * Has the request answered, one tick later. Hot path: node:http emits a request before it parses the rest of the chunk; a
   * small body has arrived after it, and nothing waits for it (bench/METHOD.md). At once where something earlier listens to the
   * body, which flows past whoever listens later.
   *
   * @param done Gets the answer; undefined: another's request.
   * @param fail Gets what the endpoint threw, or `done` with an answer. A request that a test made up may lack what they read.
   */
  pass(handle: Handle, done: (answer: EndpointAnswer | undefined) => void, fail: (error: unknown) => void): void {
    if (this.#stream.readableFlowing === true) passNow(this, handle, done, fail)
    else process.nextTick(passNow, this, handle, done, fail)
  }

  /** Ends the request, whose answer is known: of a body that is still arriving no more is read, and nothing kept. */
  end(): void {
    this.stopReading?.()
    const [incoming, outgoing] = [this.#incoming, this.#outgoing]
    if (!('stream' in outgoing) || incoming.readableEnded || outgoing.stream.endAfterHeaders) return
    // HTTP/1 closes the connection. HTTP/2 keeps a stream whose body was not read to its end, with all that still comes of it,
    // until that is closed: a little later, because a client that is still writing may take the reset for the answer.
    const { stream } = outgoing
    const closeLater = (): unknown => setTimeout(close, DISCARD_MS).unref()
    const close = (): unknown => (stream.writableEnded ? stream.destroy() : closeLater())
    closeLater()
  }
}

function passNow(
  request: NodeRequest,
  handle: Handle,
  done: (answer: EndpointAnswer | undefined) => void,
  fail: (error: unknown) => void,
): void {
  const end = (answer: EndpointAnswer): void => {
    request.end()
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
  else answered.then(end).catch(fail)
}

/** A request target may be a whole URL, as sent to a proxy (absolute form, RFC 9112, section 3.2.2). */
function targetOf(url: string): string {
  return url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*\/?/i, '/')
}

/** Whether a reader gets the whole body: nothing was read of the stream, and nothing ended, destroyed or closed it. */
function isUnread(stream: Readable): boolean {
  return stream.readable && stream.readableDidRead === false
}

/** Whether the client disconnected in the middle of the body. On HTTP/1, a request that others destroy is aborted, too. */
function hasLeft({ aborted, complete, httpVersionMajor }: NodeIncoming): boolean {
  return aborted && (httpVersionMajor !== 1 || !complete)
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

/** @param incoming Where a wrapper for functions leaves the body, whatever the framework in it does. */
function findParsed(parsed: ParsedBody, incoming: NodeIncoming & ParsedBody, limit: number): EndpointBody {
  const [rawBody, body] = [parsed.rawBody ?? incoming.rawBody, parsed.body ?? incoming.body]
  const hasBytes = [rawBody, body].some((copy) => isUint8Array(copy) || typeof copy === 'string')
  if (!hasBytes && hasLeft(incoming)) throw bodyAborted() // Something may have set an empty `body` beforehand.
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

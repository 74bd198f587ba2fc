/** A request and an answer of node:http or node:http2, for the adapters whose framework stands on them. */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import type { Readable } from 'node:stream'
import type { EndpointBody } from '../src/protocol/body.ts'
import type { EndpointAnswer, EndpointHeaders, EndpointRequest } from '../src/protocol/endpoint.ts'
import { findParsed, isUnread, type ParsedBody, readStream } from './body.ts'
import { headersOf } from './mount.ts'

/** A request of node:http, or of node:http2 through its compatible API. */
export type NodeIncoming = IncomingMessage | Http2ServerRequest

/** The answer to a {@link NodeIncoming}. */
export type NodeOutgoing = ServerResponse | Http2ServerResponse

/** A request of node:http or node:http2, and what a framework made of it. */
export class NodeRequest implements EndpointRequest {
  readonly path: string
  readonly #incoming: NodeIncoming
  readonly #parsed: ParsedBody
  readonly #stream: Readable

  /**
   * @param url Relative to the mount; a query is cut off, and so is what an absolute one names before its path.
   * @param parsed Where the framework keeps what a parser read.
   * @param stream Where the framework reads the body from, when that is not the request itself.
   */
  constructor(incoming: NodeIncoming, url: string, parsed: ParsedBody, stream: Readable = incoming) {
    const target = url.startsWith('/') ? url : withoutHost(url)
    const query = target.indexOf('?')
    this.path = query === -1 ? target : target.slice(0, query)
    this.#incoming = incoming
    this.#parsed = parsed
    this.#stream = stream
  }

  get method(): string {
    return this.#incoming.method ?? ''
  }

  get headers(): EndpointHeaders {
    return this.#incoming.headers
  }

  get remoteAddress(): string | undefined {
    return this.#incoming.socket?.remoteAddress
  }

  readBody(limit: number): EndpointBody | Promise<EndpointBody> {
    const stream = this.#stream
    if (!isUnread(stream)) return findParsed(this.#parsed, limit)
    return readStream(stream, limit, stream === this.#incoming ? this.#incoming.headers['content-length'] : undefined)
  }
}

/** A request may name all of the URL, as to a proxy (absolute form, RFC 9112, 3.2.2). */
function withoutHost(target: string): string {
  return target.replace(/^https?:\/\/[^/?]*\/?/i, '/')
}

/** Writes an answer, unless the host has answered for us or the client is gone. */
export function send(outgoing: NodeOutgoing, answer: EndpointAnswer): void {
  if (outgoing.headersSent || outgoing.destroyed) return
  const response = outgoing as ServerResponse // HTTP/2's has the same calls, under types of its own.
  const { status, body } = answer
  const headers = headersOf(answer, response.req.httpVersionMajor)
  try {
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
    response.end(response.req.method === 'HEAD' ? undefined : body)
  } catch {
    response.destroy() // Something around the response threw: better no answer than one that never ends.
  }
}

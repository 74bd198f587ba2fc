/** Writes answers to responses of node:http and node:http2. */

import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse } from 'node:http2'
import { withoutConnection } from '../../src/host/answer.ts'
import type { EndpointAnswer } from '../../src/host/endpoint.ts'
import { DISCARD_LIMIT } from '../../src/protocol/limits.ts'

/** A response of node:http, or of node:http2 through its compatible API. */
export type NodeOutgoing = ServerResponse | Http2ServerResponse

/** A request of node:http or node:http2. */
type NodeIncoming = NodeOutgoing['req']

export const NOT_FOUND: EndpointAnswer = { status: 404, headers: {}, body: '' }
/** The answer when the endpoint throws and no framework can handle the error. */
export const FAILED: EndpointAnswer = { status: 500, headers: {}, body: '' }

export function send(outgoing: NodeOutgoing, answer: EndpointAnswer, incoming: NodeIncoming): void {
  const response = outgoing as ServerResponse // An HTTP/2 response has the same methods, but a different type.
  if (response.headersSent || response.destroyed) return
  const { status, body } = answer
  const headers = headersFor(answer, incoming)
  const length = Buffer.byteLength(body)
  try {
    response.writeHead(status, status === 204 ? headers : { ...headers, 'content-length': length })
    response.end(incoming.method === 'HEAD' ? undefined : body)
  } catch {
    response.destroy() // A wrapper of the response threw. A closed connection is better than an answer that never ends.
  }
}

/**
 * Returns the headers for the HTTP version of the request. Adds `connection: close` to an HTTP/1 answer if too much of the body of the
 * request may be left to read.
 */
export function headersFor(answer: EndpointAnswer, incoming: NodeIncoming): Readonly<Record<string, string>> {
  if (incoming.httpVersionMajor !== 1) return withoutConnection(answer)
  return mayHaveLongRest(incoming) ? { ...answer.headers, connection: 'close' } : answer.headers
}

/**
 * Returns whether more than DISCARD_LIMIT bytes of the body may be left. Node.js would read and drop all of them to keep the connection.
 */
function mayHaveLongRest({ complete, headers }: NodeIncoming): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DISCARD_LIMIT)
}

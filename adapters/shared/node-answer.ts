/** Writes answers to responses of node:http and node:http2, and turns their bodies into what Node frameworks send. */

import type { ServerResponse } from 'node:http'
import type { Http2ServerResponse, ServerHttp2Stream } from 'node:http2'
import { Readable } from 'node:stream'
import { withoutConnection } from '../../src/http/answer.ts'
import type { AnswerBody, EndpointAnswer } from '../../src/http/endpoint.ts'
import { CHUNK_TAKEN_MS, DISCARD_LIMIT } from '../../src/message/limits.ts'

/** A response of node:http, or of node:http2 through its compatible API. */
export type NodeOutgoing = ServerResponse | Http2ServerResponse

export function send(outgoing: NodeOutgoing, answer: EndpointAnswer): void {
  const response = outgoing as ServerResponse // HTTP/2's has the same methods, with types of its own.
  if (response.headersSent || response.destroyed) return
  const { status, body } = answer
  const headers = headersFor(answer, response)
  const { method } = response.req
  try {
    if (endsAfterHead(answer, method)) response.writeHead(status, headers).end()
    else if (isStreamed(body)) {
      response.writeHead(status, headers).flushHeaders()
      toStream(body, response).pipe(response)
    } else {
      response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
      response.end(method === 'HEAD' ? undefined : body)
    }
  } catch {
    response.destroy() // Code around the response threw. A closed connection is better than an answer that never ends.
  }
}

export function headersFor(answer: EndpointAnswer, { req }: NodeOutgoing): Readonly<Record<string, string>> {
  if (req.httpVersionMajor !== 1) return withoutConnection(answer)
  return mayGoOn(req) ? { ...answer.headers, connection: 'close' } : answer.headers
}

/** Whether Node would read and drop more of a body, to keep the connection, than is done for any other that is refused. */
function mayGoOn({ complete, headers }: NodeOutgoing['req']): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DISCARD_LIMIT)
}

/** Whether an answer ends after its head: by its status (RFC 9110, section 6.4.1), or when HEAD asks for a stream. */
export function endsAfterHead({ status, body }: EndpointAnswer, method: string | undefined): boolean {
  return status === 204 || status === 304 || (method === 'HEAD' && isStreamed(body))
}

/**
 * The body of an answer as Node frameworks take it. An iterable becomes a stream that holds no chunk in advance. The
 * stream never fails: if the iterable throws, or the client does not take a chunk in time, it closes the connection.
 */
export function toNodeBody(body: AnswerBody, outgoing: NodeOutgoing): string | Buffer | Readable {
  if (typeof body === 'string') return body
  return isStreamed(body) ? toStream(body, outgoing) : toBuffer(body)
}

export function isStreamed(body: AnswerBody): body is AsyncIterable<string | Uint8Array> {
  return typeof body === 'object' && Symbol.asyncIterator in body
}

function toStream(body: AsyncIterable<string | Uint8Array>, outgoing: NodeOutgoing): Readable {
  const iterator = body[Symbol.asyncIterator]()
  let isDone = false
  let untaken: NodeJS.Timeout | undefined // Runs only while a chunk waits for the client.

  const next = async (): Promise<string | Buffer | null> => {
    for (;;) {
      const { done, value } = await iterator.next()
      isDone = done === true
      if (isDone) return null
      if (value.length !== 0) return typeof value === 'string' ? value : toBuffer(value) // '' would stall the stream.
    }
  }
  const stream = new Readable({
    highWaterMark: 0,
    read() {
      clearTimeout(untaken)
      next().then(
        (chunk) => {
          if (stream.destroyed) return
          if (chunk !== null) untaken = setTimeout(cut, CHUNK_TAKEN_MS, outgoing).unref()
          stream.push(chunk)
        },
        () => cut(outgoing),
      )
    },
    destroy(error, done) {
      clearTimeout(untaken)
      // Not awaited: a generator that waits for something returns only after that.
      if (!isDone) new Promise((resolve) => resolve(iterator.return?.())).catch(() => {})
      done(error)
    },
  })
  if (streamOf(outgoing).destroyed) stream.destroy()
  else outgoing.once('close', () => stream.destroy())
  return stream
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Closes the connection, so that the client does not take what it has for the whole answer. */
function cut(outgoing: NodeOutgoing): void {
  // Destroyed without an error, a stream of HTTP/2 ends as if it were complete.
  streamOf(outgoing).destroy('stream' in outgoing ? new Error('The answer is not whole.') : undefined)
}

/** What a response writes to. The compatible API of HTTP/2 does not show what became of its stream. */
export function streamOf(outgoing: NodeOutgoing): ServerResponse | ServerHttp2Stream {
  return 'stream' in outgoing ? outgoing.stream : outgoing
}

/**
 * Serves an endpoint from anything that speaks Web Fetch: Next.js, Hono, Bun, Deno and others.
 *
 * @module hookline/fetch
 */

import { withoutConnection } from '../src/http/answer.ts'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../src/http/body.ts'
import type { AnswerBody, Endpoint, EndpointHeaders, EndpointRequest } from '../src/http/endpoint.ts'
import { mount, type ServeOptions } from './shared/mount.ts'

export type { ServeOptions } from './shared/mount.ts'

/**
 * Returns a Fetch handler. A request for another path is answered 404.
 *
 * @example
 * export const POST = serve(receiver)
 */
export function serve(endpoint: Endpoint, options?: ServeOptions): (request: Request) => Promise<Response> {
  const handle = mount(endpoint, options)

  return async function hookline(request) {
    const incoming = new FetchRequest(request)
    const answer = await handle(incoming)
    incoming.end()
    if (answer === undefined) return new Response(null, { status: 404 })
    const { status, body } = answer
    const isEmpty = request.method === 'HEAD' || NO_BODY.has(status)
    return new Response(isEmpty ? null : toWebBody(body, incoming), { status, headers: withoutConnection(answer) })
  }
}

const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304])

class FetchRequest implements EndpointRequest {
  path: string
  readonly originalPath: string
  readonly query: string
  readonly headers: EndpointHeaders
  readonly remoteAddress = undefined
  readonly #request: Request
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #hasEnded = false
  #left: AbortController | undefined
  #signal: AbortSignal | undefined

  constructor(request: Request) {
    const { pathname, search } = new URL(request.url)
    this.path = pathname
    this.originalPath = pathname
    this.query = search.slice(1)
    this.headers = Object.fromEntries(request.headers)
    this.#request = request
  }

  get method(): string {
    return this.#request.method
  }

  get signal(): AbortSignal {
    this.#left ??= new AbortController()
    this.#signal ??= AbortSignal.any([this.#request.signal, this.#left.signal])
    return this.#signal
  }

  leave(): void {
    this.#left ??= new AbortController()
    this.#left.abort()
  }

  async readBody(limit: number): Promise<EndpointBody> {
    const { body, bodyUsed, headers } = this.#request
    if (bodyUsed || body?.locked) {
      throw bodyConsumed('a web request that was read or is being read', 'Pass it on unread, and read a clone of it.')
    }
    if (body === null) return { bytes: new Uint8Array(), source: 'stream' }
    this.#reader = body.getReader()
    const bytes = await readAll(this.#reader, limit, headers.get('content-length'))
    if (this.#hasEnded) throw bodyAborted()
    this.#reader = undefined
    return { bytes, source: 'stream' }
  }

  /** Ends the request, whose answer is known: of a body that is still arriving no more is read, and nothing kept. */
  end(): void {
    this.#hasEnded = true
    // A little later: Readable.toWeb of Node throws where nothing catches it when it is cancelled while it resumes.
    const reader = this.#reader
    if (reader !== undefined) setTimeout(() => reader.cancel().catch(() => {}), 0)
  }
}

/**
 * Reads a web stream to its end. raw-body could, but its dependencies call `require`, which runtimes at the edge lack.
 */
async function readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limit: number,
  length: string | null,
): Promise<Uint8Array> {
  if (Number(length) > limit) throw bodyTooLarge(limit)
  const chunks: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw bodyAborted()
    })
    if (done) break
    size += value.length
    if (size > limit) throw bodyTooLarge(limit)
    chunks.push(value)
  }
  if (length !== null && size !== Number(length)) throw bodyAborted()
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, size)
}

function toWebBody(
  body: AnswerBody,
  request: FetchRequest,
): string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> {
  if (typeof body === 'string') return body
  if (!(Symbol.asyncIterator in body)) return body as Uint8Array<ArrayBuffer>
  const iterator = body[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value)
      },
      cancel() {
        request.leave()
        // Not awaited: a generator that waits for something returns only after that.
        new Promise((resolve) => resolve(iterator.return?.())).catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Serves an endpoint from any host that supports the Fetch API, such as Next.js, Hono, Bun or Deno.
 *
 * @module hookline/fetch
 */

import { withoutConnection } from '../src/host/answer.ts'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../src/host/body.ts'
import type { Endpoint, EndpointHeaders, EndpointRequest } from '../src/host/endpoint.ts'
import { ArrivingBytes } from '../src/kit/arriving-bytes.ts'
import { requireWebRequest } from './shared/host.ts'
import { type Handle, mount, type ServeOptions } from './shared/mount.ts'

export type { ServeOptions } from './shared/mount.ts'

/**
 * Returns a Fetch handler. The handler answers a request for another path with the status 404.
 *
 * @example
 * export const POST = serve(receiver)
 */
export function serve(endpoint: Endpoint, options?: ServeOptions): (request: Request) => Promise<Response> {
  const handle = mount(endpoint, options)

  return function hookline(request, ...others: unknown[]) {
    requireWebRequest(request, ...others) // Throws synchronously, because Express 4 would ignore a rejected promise.
    return respond(handle, request)
  }
}

async function respond(handle: Handle, request: Request): Promise<Response> {
  const incoming = new FetchRequest(request)
  const answer = await handle(incoming)
  incoming.discardBody()
  if (answer === undefined) return new Response(null, { status: 404 })
  const { status, body } = answer
  const isEmpty = request.method === 'HEAD' || status === 204
  return new Response(isEmpty ? null : body, { status, headers: withoutConnection(answer) })
}

class FetchRequest implements EndpointRequest {
  path: string
  readonly query: string
  readonly headers: EndpointHeaders
  readonly remoteAddress = undefined
  readonly #request: Request
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #hasEnded = false

  constructor(request: Request) {
    const { pathname, search } = new URL(request.url)
    this.path = pathname
    this.query = search.slice(1)
    this.headers = Object.fromEntries(request.headers)
    this.#request = request
  }

  get method(): string {
    return this.#request.method
  }

  async readBody(limit: number): Promise<EndpointBody> {
    const { body, bodyUsed, headers } = this.#request
    if (bodyUsed || body?.locked) {
      throw bodyConsumed(
        'a web request whose body was read or is being read',
        'Pass on the request unread, and read a clone of it instead.',
      )
    }
    if (body === null) return { bytes: new Uint8Array(), source: 'stream' }
    this.#reader = body.getReader()
    const bytes = await readAll(this.#reader, limit, headers.get('content-length'))
    if (this.#hasEnded) throw bodyAborted()
    this.#reader = undefined
    return { bytes, source: 'stream' }
  }

  /** Ends a request whose answer is known: stops reading a body that is still arriving, and keeps none of it. */
  discardBody(): void {
    this.#hasEnded = true
    // Cancels a little later, because a stream from `Readable.toWeb` of Node.js throws an uncaught error if it is cancelled while it
    // resumes.
    const reader = this.#reader
    if (reader !== undefined) setTimeout(() => reader.cancel().catch(() => {}), 0)
  }
}

/** @param length The header `content-length`. */
async function readAll(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  limit: number,
  length: string | null,
): Promise<Uint8Array> {
  if (Number(length) > limit) throw bodyTooLarge(limit)
  const bytes = new ArrivingBytes()
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw bodyAborted()
    })
    if (done) break
    if (bytes.size + value.length > limit) throw bodyTooLarge(limit)
    bytes.add(value)
  }
  if (length !== null && bytes.size !== Number(length)) throw bodyAborted()
  return bytes.take()
}

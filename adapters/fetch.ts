/**
 * Serves an endpoint from anything that speaks Web Fetch: Next.js, Hono, Bun, Deno and others.
 *
 * @module hookline/fetch
 */

import { getRawBodyWeb, type RawBodyError } from 'raw-body'
import { bodyAborted, bodyConsumed, bodyTooLarge, type EndpointBody } from '../src/protocol/body.ts'
import type { Endpoint, EndpointRequest } from '../src/protocol/endpoint.ts'
import { headersOf, mount, type ServeOptions } from './mount.ts'

export type { ServeOptions } from './mount.ts'

/**
 * Makes a Fetch handler. A path that is not the endpoint's is answered 404.
 *
 * @example
 * export const POST = serve(receiver)
 */
export function serve(endpoint: Endpoint, options?: ServeOptions): (request: Request) => Promise<Response> {
  const answer = mount(endpoint, options)

  return async function hookline(request) {
    const given = await answer(fromFetch(request))
    if (given === undefined) return new Response(null, { status: 404 })
    return new Response(given.body, { status: given.status, headers: headersOf(given, HOSTS_BUSINESS) })
  }
}

/** A Fetch handler does not know which version of HTTP its host speaks. */
const HOSTS_BUSINESS = 0

function fromFetch(request: Request): EndpointRequest {
  return {
    method: request.method,
    path: new URL(request.url).pathname,
    headers: Object.fromEntries(request.headers),
    remoteAddress: undefined,
    readBody: (limit) => readBody(request, limit),
  }
}

async function readBody(request: Request, limit: number): Promise<EndpointBody> {
  if (request.bodyUsed || request.body?.locked) throw bodyConsumed('a web request can be read only once')
  if (request.body === null) return { bytes: new Uint8Array(), source: 'stream' }
  try {
    const length = request.headers.get('content-length')
    return { bytes: await getRawBodyWeb(request.body, { limit, length }), source: 'stream' }
  } catch (error) {
    request.body.cancel().catch(() => {})
    throw (error as RawBodyError).type === 'entity.too.large' ? bodyTooLarge(limit) : bodyAborted()
  }
}

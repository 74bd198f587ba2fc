/** Forwards requests to another endpoint, with the identical bytes and only the end-to-end headers (RFC 9110, section 7.6.1). */

import { createPoster, type Exchange } from '../../../../src/internals.ts'
import { BODY_LIMIT, headerOf, type KeptRequest, pairsOf } from './kept-request.ts'

export type ForwardedAnswer = Omit<Exchange, 'headers'> & { readonly headers: readonly string[] }

export interface Forwarder {
  forward(
    request: Pick<KeptRequest, 'method' | 'target' | 'headers' | 'body'>,
    signal: AbortSignal,
  ): Promise<ForwardedAnswer>
  close(): Promise<void>
}

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/** Other headers that are not forwarded. `host` and `content-length` are set anew, and `expect` has no use once the body has been read. */
const SET_HERE = ['host', 'content-length', 'expect']

/** Creates a forwarder to a URL. If the URL has no path, each request keeps its own path and query. */
export function createForwarder(url: URL, connections = 256): Forwarder {
  const poster = createPoster(url, connections)
  const keepsPath = url.pathname === '/' && url.search === ''

  return {
    async forward({ method, target, headers, body }, signal) {
      const path = keepsPath && target.startsWith('/') ? target : url.pathname + url.search
      const options = { method, path, responseLimit: BODY_LIMIT, signal }
      const exchange = await poster.post(body, endToEnd(headers, SET_HERE), options)
      const received = Object.entries(exchange.headers).flatMap(([name, values = []]) =>
        [values].flat().flatMap((value) => [name, value]),
      )
      if (exchange.body.length < BODY_LIMIT) return { ...exchange, headers: endToEnd(received) }
      const reason = `The body of the answer must be shorter than ${BODY_LIMIT} bytes. Answer with a shorter body.`
      return { headers: [], body: Buffer.alloc(0), durationMs: exchange.durationMs, error: 'http', reason }
    },
    close: poster.close,
  }
}

function endToEnd(headers: readonly string[], others: readonly string[] = []): string[] {
  const listed = (headerOf(headers, 'connection') ?? '').toLowerCase().split(/\s*,\s*/)
  const left = new Set([...HOP_BY_HOP, ...others, ...listed])
  return pairsOf(headers)
    .filter(([name]) => !left.has(name.toLowerCase()))
    .flat()
}

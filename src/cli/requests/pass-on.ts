/** Passes a request on to another endpoint: the identical bytes and the end-to-end headers (RFC 9110, section 7.6.1). */

import { createPoster, type Exchange } from '../exchange.ts'
import { BODY_LIMIT, headerOf, type KeptRequest, pairsOf } from './kept.ts'

/** The parts of a request that are passed on. */
type PassedRequest = Pick<KeptRequest, 'method' | 'target' | 'headers' | 'body'>

/** An answer of the other endpoint; without a status, the reason why it has none. */
export type PassedAnswer = Omit<Exchange, 'headers'> & { readonly headers: readonly string[] }

/** The way to another endpoint. */
export interface Passage {
  /** Never rejects. Does not follow redirects. */
  pass(request: PassedRequest, signal?: AbortSignal): Promise<PassedAnswer>
  close(): Promise<void>
}

/** Creates the way. A URL without a path keeps the path and the query of each request. */
export function createPassage(url: URL, connections = 256): Passage {
  const poster = createPoster(url, connections)
  const keepsPath = url.pathname === '/' && url.search === ''

  return {
    async pass({ method, target, headers, body }, signal) {
      const path = keepsPath && target.startsWith('/') ? target : url.pathname + url.search
      const options = { method, path, responseLimit: BODY_LIMIT, ...(signal && { signal }) }
      const exchange = await poster.post(body, endToEnd(headers, SET_HERE), options)
      if (exchange.body.length < BODY_LIMIT) return { ...exchange, headers: endToEnd(listed(exchange), []) }
      const reason = `The answer must be shorter. Got ${BODY_LIMIT} bytes or more. Answer with a short body.`
      return { headers: [], body: Buffer.alloc(0), durationMs: exchange.durationMs, error: 'http', reason }
    },
    close: () => poster.close(),
  }
}

/** Headers that belong to one connection. */
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
/** The host is that of the URL; the length that of the bytes; an expectation was met when the body was read. */
const SET_HERE = ['host', 'content-length', 'expect']

function endToEnd(headers: readonly string[], others: readonly string[]): string[] {
  const listed = (headerOf(headers, 'connection') ?? '').toLowerCase().split(/\s*,\s*/)
  const left = new Set([...HOP_BY_HOP, ...others, ...listed])
  return pairsOf(headers)
    .filter(([name]) => !left.has(name.toLowerCase()))
    .flat()
}

function listed({ headers }: Exchange): string[] {
  return Object.entries(headers).flatMap(([name, values = []]) => [values].flat().flatMap((value) => [name, value]))
}

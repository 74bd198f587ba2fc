/** Where an endpoint is mounted: the path a host's adapter was given, held against the path of a request. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../src/protocol/endpoint.ts'

/** What an adapter that can stand in front of a whole server takes. */
export interface ServeOptions {
  /**
   * The one path to answer, exactly: `/webhooks`. Default: every path that reaches the adapter.
   * An endpoint with several paths of its own (a collector) takes none.
   */
  readonly path?: string
}

/** Answers what is the endpoint's, and nothing for any other path. */
export type Answer = (request: EndpointRequest) => Promise<EndpointAnswer> | undefined

/**
 * Binds an endpoint to a path.
 *
 * @throws TypeError for something that is no endpoint, and for a path that can never match.
 */
export function mount(endpoint: Endpoint, { path }: ServeOptions = {}): Answer {
  requireEndpoint(endpoint)
  if (path === undefined) return (request) => endpoint.handle(request)
  requirePath(endpoint, path)
  return (request) => (request.path === path ? endpoint.handle(request) : undefined)
}

/** The headers of an answer; `connection` only where HTTP/1 gives it a meaning: later versions forbid it. */
export function headersOf({ headers }: EndpointAnswer, httpVersionMajor: number): Record<string, string> {
  if (httpVersionMajor === 1 || !('connection' in headers)) return headers
  const { connection: _, ...others } = headers
  return others
}

/** @throws TypeError for something that is no endpoint. */
export function requireEndpoint(endpoint: Endpoint): void {
  if (typeof endpoint?.handle !== 'function') {
    throw new TypeError('serve: the first argument is a receiver or a collector.')
  }
}

/** @throws TypeError for a path that can never match, and for an endpoint that has paths of its own. */
export function requirePath(endpoint: Endpoint, path: string): void {
  if (endpoint.routes !== undefined) {
    throw new TypeError(`path: this endpoint has paths of its own (${endpoint.routes.join(', ')}). Leave path out.`)
  }
  if (typeof path !== 'string' || !path.startsWith('/') || /[?#]/.test(path)) {
    throw new TypeError("path: must start with '/' and hold no query, for instance '/webhooks'.")
  }
}

/** What the option `path` of `serve` does: which requests are the endpoint's, and the path that it sees. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../../src/http/endpoint.ts'
import { invalidOption, kindOf, requireOptions, show } from '../../src/options/checks.ts'

/** Options of `serve`. */
export interface ServeOptions {
  /**
   * Where the endpoint is mounted. For an endpoint with one path (a receiver), that path exactly: `/webhooks`. For an
   * endpoint with several (a collector), the prefix of all of them: `/analytics` answers `/analytics/v1/batch`.
   * Default: every path that reaches the adapter, without a prefix.
   */
  readonly path?: string
}

/** Answers the endpoint's requests, and returns undefined for all others. Makes the path relative to the mount. */
export type Handle = (request: EndpointRequest & { path: string }) => Promise<EndpointAnswer> | undefined

export function mount(endpoint: Endpoint, options: ServeOptions = {}): Handle {
  requireEndpoint(endpoint)
  requireOptions('serve', options, ['path'])
  const { path } = options
  if (path === undefined) return (request) => endpoint.handle(request)
  requirePath(path)
  if (endpoint.routes === undefined) return (request) => (request.path === path ? endpoint.handle(request) : undefined)

  const prefix = path.endsWith('/') ? path.slice(0, -1) : path
  return (request) => {
    if (request.path !== prefix && !request.path.startsWith(`${prefix}/`)) return undefined
    request.path = request.path.slice(prefix.length) || '/'
    return endpoint.handle(request)
  }
}

function requireEndpoint(endpoint: Endpoint): void {
  if (typeof endpoint?.handle === 'function') return
  const advice = 'Pass what createReceiver() or createCollector() returns.'
  throw invalidOption('serve: endpoint', 'must be a receiver or a collector', kindOf(endpoint), advice)
}

export function requirePath(path: string): void {
  if (typeof path === 'string' && path.startsWith('/') && !/[?#]/.test(path)) return
  const advice = "Pass a path that begins with '/', for example '/webhooks'."
  throw invalidOption('path', "must begin with '/' and hold no '?' and no '#'", show(path), advice)
}

/** The option `path` of `serve`: decides which requests are for the endpoint, and which path it sees. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../../src/host/endpoint.ts'
import { invalidOption, kindOf, requireOptions, show } from '../../src/kit/checks.ts'

/** Options of `serve`. */
export interface ServeOptions {
  /**
   * Where the endpoint is mounted. For an endpoint with one path (a receiver), that exact path: `/webhooks`. For an endpoint with several
   * paths (a collector), the prefix of all of them: `/analytics` answers `/analytics/v1/batch`. Default: every path that reaches the
   * adapter, without a prefix.
   */
  readonly path?: string
}

/** Answers requests for the endpoint, and returns undefined for all others. The endpoint sees the path relative to where it is mounted. */
export type Handle = (request: MountedRequest) => Promise<EndpointAnswer> | undefined

interface MountedRequest extends EndpointRequest {
  path: string
  /** The URL before a router made it relative, if the framework keeps it. */
  readonly originalUrl?: string | undefined
}

/** Checks the arguments of `serve`, and returns the function that answers the requests. */
export function mount(endpoint: Endpoint, options: ServeOptions = {}): Handle {
  requireEndpoint(endpoint)
  requireOptions('serve', options, ['path'])
  const { path } = options
  if (path === undefined) return (request) => endpoint.handle(request)
  requirePath(path)
  const prefix = path.endsWith('/') ? path.slice(0, -1) : path
  const hasRoutes = endpoint.routes !== undefined
  const isMounted = (given: string): boolean =>
    hasRoutes ? given === prefix || given.startsWith(`${prefix}/`) : given === path
  let hasWarned = false
  return (request) => {
    if (isMounted(request.path)) {
      if (hasRoutes) request.path = request.path.slice(prefix.length) || '/'
      return endpoint.handle(request)
    }
    if (!hasWarned && isMounted(request.originalUrl?.split('?', 1)[0] ?? '')) {
      hasWarned = true
      const advice = 'Remove `path`, or pass only the part that is left below the mount.'
      const text = `No request can match \`path\` '${path}', because a router has already removed a part of the request's path. ${advice}`
      process.emitWarning(text, { code: 'HOOKLINE_PATH' })
    }
    return undefined
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
  throw invalidOption('path', "must begin with '/' and contain neither '?' nor '#'", show(path), advice)
}

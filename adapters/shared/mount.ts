/** Applies the option `path` of `serve`, which determines the requests that are for the endpoint, and the path that the endpoint gets. */

import type { Endpoint, EndpointAnswer, EndpointRequest } from '../../src/host/endpoint.ts'
import { invalidOption, kindOf, requireOptions, show } from '../../src/kit/checks.ts'

/** The options of `serve`. */
export interface ServeOptions {
  /**
   * The path at which the endpoint is mounted. A receiver answers exactly this path, such as `/webhooks`. A collector, which has several
   * paths, answers them below this path: with `/analytics`, it answers `/analytics/v1/batch`. Default: a receiver answers every path that
   * reaches the adapter, and a collector answers its own paths.
   */
  readonly path?: string
}

/** Answers a request for the endpoint, and returns undefined for any other. The endpoint gets the path relative to where it is mounted. */
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
      const advice = 'Remove `path`, or pass only the part of the path that the router leaves.'
      const text = `No request can match \`path\` '${path}', because a router has already removed a part of the request's path. ${advice}`
      process.emitWarning(text, { code: 'HOOKLINE_PATH' })
    }
    return undefined
  }
}

function requireEndpoint(endpoint: Endpoint): void {
  if (typeof endpoint?.handle === 'function') return
  const advice = 'Pass the result of createReceiver() or createCollector().'
  throw invalidOption('serve: endpoint', 'must be a receiver or a collector', kindOf(endpoint), advice)
}

export function requirePath(path: string): void {
  if (typeof path === 'string' && path.startsWith('/') && !/[?#]/.test(path)) return
  const advice = "Pass a path that begins with '/', for example '/webhooks'."
  throw invalidOption('path', "must begin with '/' and contain neither '?' nor '#'", show(path), advice)
}

/**
 * Serves an endpoint from Fastify 4 and 5.
 *
 * @module hookline/fastify
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import fp from 'fastify-plugin'
import type { Endpoint, EndpointAnswer } from '../src/host/endpoint.ts'
import { invalidOption } from '../src/kit/checks.ts'
import { requireScope } from './shared/host.ts'
import { type Handle, mount, requirePath } from './shared/mount.ts'
import { headersFor } from './shared/node-answer.ts'
import { NodeRequest } from './shared/node-request.ts'

/** The part of a Fastify request that the plugin uses. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage
  readonly rawBody?: unknown
  readonly body: unknown
}

/** The part of a Fastify reply that the plugin uses. */
export interface FastifyReplyLike {
  readonly sent: boolean
  readonly raw: ServerResponse
  code(status: number): unknown
  headers(headers: Record<string, string>): unknown
  send(body: Uint8Array | Error): unknown
  callNotFound(): unknown
}

/** The part of a Fastify instance that the plugin uses. */
export interface FastifyScope {
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: Readable, done: (error: null, body: Readable) => void) => void,
  ): unknown
  register(plugin: never, options: { prefix: string }): unknown
  all(
    path: string,
    options: { errorHandler(error: Error, request: FastifyRequestLike, reply: FastifyReplyLike): void },
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => void,
  ): unknown
}

/** The options that `app.register` accepts for the plugin, in addition to the options of Fastify itself, such as `prefix`. */
export interface FastifyServeOptions {
  /**
   * The path at which the endpoint is mounted, relative to `prefix`. A receiver answers exactly this path. A collector, which has several
   * paths, answers them below this path. Default `/`.
   */
  readonly path?: string
}

/** The Fastify plugin that `serve` returns. */
export type FastifyServePlugin = (scope: FastifyScope, options: FastifyServeOptions) => Promise<void>

/**
 * Returns a Fastify plugin. The plugin replaces the body parsers of its own routes only: other routes keep theirs.
 *
 * @example
 * app.register(serve(receiver), { path: '/webhooks' })
 * app.register(serve(collector), { prefix: '/analytics' })
 */
export function serve(endpoint: Endpoint, ...others: []): FastifyServePlugin {
  const handle = mount(endpoint)
  if (others.length > 0) {
    const advice = "Pass the options to `register`: app.register(serve(receiver), { path: '/webhooks' })."
    throw invalidOption('serve', 'accepts only an endpoint', `${1 + others.length} arguments`, advice)
  }
  const register: FastifyServePlugin = async (scope, { path }) => {
    if (path !== undefined) requirePath(path)
    scope.removeAllContentTypeParsers()
    for (const type of ANY_TYPE) {
      scope.addContentTypeParser(type, (_request, payload, parsed) => parsed(null, payload))
    }
    const { routes } = endpoint
    if (routes === undefined) return addRoute(scope, path ?? '/', handle)
    const addRoutes = async (below: FastifyScope) =>
      routes.forEach((route) => void addRoute(below, route, handle, route))
    if (path === undefined) await addRoutes(scope)
    else scope.register(addRoutes as never, { prefix: path })
  }
  const plugin: FastifyServePlugin = (scope, options, ...others: unknown[]) => {
    requireScope(scope, options, ...others) // Throws synchronously, because Express 4 would ignore a rejected promise.
    return register(scope, options)
  }
  return fp(plugin as never, {
    name: 'hookline',
    fastify: '4.x || 5.x',
    encapsulate: true,
  }) as unknown as FastifyServePlugin
}

/**
 * The content types that the parser accepts. The list names the most common type, because with only `*`, Fastify would
 * parse the header `content-type` of every request.
 */
const ANY_TYPE = ['application/json', '*']

/**
 * @param path The path that the endpoint sees. Default: the path of the request.
 */
function addRoute(scope: FastifyScope, route: string, handle: Handle, path?: string): void {
  const handler = (request: FastifyRequestLike, reply: FastifyReplyLike) => respond(handle, path, request, reply)
  const errorHandler = (error: Error, request: FastifyRequestLike, reply: FastifyReplyLike) => {
    if (reply.raw.destroyed) return // The client disconnected.
    // Fastify refuses a content type for which it has no parser. This error is ignored, because the endpoint decides which content types to
    // accept.
    if (!('code' in error) || error.code !== 'FST_ERR_CTP_INVALID_MEDIA_TYPE') throw error
    handler(request, reply)
  }
  scope.all(route, { errorHandler }, handler)
}

function respond(handle: Handle, path: string | undefined, request: FastifyRequestLike, reply: FastifyReplyLike): void {
  const { raw, rawBody, body } = request
  const incoming = new NodeRequest(raw, reply.raw, raw.url ?? '', { rawBody }, body as Readable | undefined)
  if (path !== undefined) incoming.path = path // Fastify has already matched the route, by its own rules for prefixes, case and slashes.
  const fail = (error: unknown): void => void reply.send(error as Error)
  const done = (answer: EndpointAnswer | undefined): void => {
    if (reply.sent) return
    try {
      if (answer === undefined) return void reply.callNotFound()
      reply.code(answer.status)
      reply.headers(headersFor(answer, raw))
      reply.send(Buffer.from(answer.body)) // Sent as bytes, because Fastify would add a charset to text.
    } catch {
      reply.raw.destroy() // Fastify or a hook threw. The client must not wait for an answer that never comes.
    }
  }
  incoming.answerWith(handle, done, fail)
}

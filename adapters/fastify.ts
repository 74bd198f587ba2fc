/**
 * Serves an endpoint from Fastify 4 and 5.
 *
 * @module hookline/fastify
 */

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import fp from 'fastify-plugin'
import type { Endpoint } from '../src/protocol/endpoint.ts'
import { headersOf, requireEndpoint, requirePath } from './mount.ts'
import { NodeRequest } from './node-http.ts'

/** What is used of a Fastify request. */
export interface FastifyRequestLike {
  readonly raw: IncomingMessage
  readonly rawBody?: unknown
  readonly body: unknown
}

/** What is used of a Fastify reply. */
export interface FastifyReplyLike {
  readonly sent: boolean
  readonly raw: { destroy(): unknown }
  code(status: number): unknown
  headers(headers: Record<string, string>): unknown
  send(body: Uint8Array): unknown
  callNotFound(): unknown
}

/** What is used of a Fastify instance. */
export interface FastifyScope {
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: Readable, done: (error: null, body: Readable) => void) => void,
  ): unknown
  setErrorHandler(handler: (error: Error, request: FastifyRequestLike, reply: FastifyReplyLike) => unknown): unknown
  all(path: string, handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => void): unknown
}

/** What `app.register` takes beside the plugin; Fastify itself reads `prefix`. */
export interface FastifyServeOptions {
  /** The path of an endpoint that has one path, below the prefix. Default `/`. */
  readonly path?: string
}

/** A Fastify plugin. */
export type FastifyServePlugin = (scope: FastifyScope, options: FastifyServeOptions) => Promise<void>

/**
 * Makes a Fastify plugin. Its body parser stays inside it: other routes keep theirs.
 *
 * @example
 * app.register(serve(receiver), { path: '/webhooks' })
 */
export function serve(endpoint: Endpoint): FastifyServePlugin {
  requireEndpoint(endpoint)
  const plugin: FastifyServePlugin = async (scope, { path }) => {
    if (path !== undefined) requirePath(endpoint, path)
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload))
    for (const route of endpoint.routes ?? [path ?? '/']) {
      scope.all(route, (request, reply) => answer(endpoint, route, request, reply))
    }
    // Before it parses a body, Fastify refuses a content type that it cannot read. That is for the endpoint to say.
    scope.setErrorHandler((error, request, reply) => {
      if (!('code' in error) || error.code !== 'FST_ERR_CTP_INVALID_MEDIA_TYPE') throw error
      answer(endpoint, path ?? '/', request, reply)
    })
  }
  return fp(plugin as never, {
    name: 'hookline',
    fastify: '4.x || 5.x',
    encapsulate: true,
  }) as unknown as FastifyServePlugin
}

function answer(endpoint: Endpoint, route: string, request: FastifyRequestLike, reply: FastifyReplyLike): void {
  const { raw, rawBody, body } = request
  const answered = endpoint.handle(new NodeRequest(raw, route, { rawBody }, body as Readable | undefined))
  if (answered === undefined) return void reply.callNotFound()
  answered
    .then((given) => {
      if (reply.sent) return
      reply.code(given.status)
      reply.headers(headersOf(given, raw.httpVersionMajor))
      reply.send(Buffer.from(given.body)) // To text, Fastify adds a charset.
    })
    .catch(() => reply.raw.destroy()) // A hook of the host threw: better no answer than one that never ends.
}

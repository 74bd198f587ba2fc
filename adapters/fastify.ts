/**
 * Serves an endpoint from Fastify 4 and 5.
 *
 * @module hookline/fastify
 */

import type { Readable } from 'node:stream'
import fp from 'fastify-plugin'
import type { Endpoint } from '../src/protocol/endpoint.ts'
import type { FastifyReplyLike, FastifyRequestLike, FastifyServePlugin } from './fastify-types.ts'
import { headersOf, requireEndpoint, requirePath } from './mount.ts'
import { NodeRequest } from './node-http.ts'

export type * from './fastify-types.ts'

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
      const handler = (request: FastifyRequestLike, reply: FastifyReplyLike) => answer(endpoint, route, request, reply)
      // Before it parses a body, Fastify refuses a content type that it cannot read. That is for the endpoint to say.
      const errorHandler = (error: Error, request: FastifyRequestLike, reply: FastifyReplyLike) => {
        if (!('code' in error) || error.code !== 'FST_ERR_CTP_INVALID_MEDIA_TYPE') throw error
        handler(request, reply)
      }
      scope.all(route, { errorHandler }, handler)
    }
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

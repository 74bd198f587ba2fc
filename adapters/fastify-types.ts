/** What is used of Fastify, in types that those of both supported majors fit. */

import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'

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
  all(
    path: string,
    options: { errorHandler(error: Error, request: FastifyRequestLike, reply: FastifyReplyLike): void },
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => void,
  ): unknown
}

/** What `app.register` takes beside the plugin; Fastify itself reads `prefix`. */
export interface FastifyServeOptions {
  /** The path of an endpoint that has one path, below the prefix. Default `/`. */
  readonly path?: string
}

/** A Fastify plugin. */
export type FastifyServePlugin = (scope: FastifyScope, options: FastifyServeOptions) => Promise<void>

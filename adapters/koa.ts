/**
 * Serves an endpoint from Koa 2 and 3.
 *
 * @module hookline/koa
 */

import type { IncomingMessage } from 'node:http'
import type { Endpoint } from '../src/protocol/endpoint.ts'
import type { ParsedBody } from './body.ts'
import { headersOf, mount, type ServeOptions } from './mount.ts'
import { NodeRequest } from './node-http.ts'

export type { ServeOptions } from './mount.ts'

/** What is used of a Koa context. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly request: object
  readonly path: string
  status: number
  body: unknown
  set(headers: Record<string, string>): void
}

/**
 * Makes a Koa middleware. A path that is not the endpoint's goes on to the next one; an error never does.
 *
 * @example
 * app.use(serve(receiver, { path: '/webhooks' }))
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (context: KoaContext, next: () => Promise<unknown>) => Promise<unknown> {
  const answer = mount(endpoint, options)

  return function hookline(context, next) {
    const answered = answer(new NodeRequest(context.req, context.path, context.request as ParsedBody))
    if (answered === undefined) return next()
    return answered.then((given) => {
      context.status = given.status
      context.set(headersOf(given, context.req.httpVersionMajor))
      context.body = given.body
    })
  }
}

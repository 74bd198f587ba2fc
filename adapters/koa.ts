/**
 * Serves an endpoint from Koa 2 and 3.
 *
 * @module hookline/koa
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint, EndpointAnswer } from '../src/http/endpoint.ts'
import { mount, type ServeOptions } from './shared/mount.ts'
import { headersFor, isStreamed, send, toNodeBody } from './shared/node-answer.ts'
import { NodeRequest, type ParsedBody } from './shared/node-request.ts'

export type { ServeOptions } from './shared/mount.ts'

/** The part of a Koa context that is used. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly request: object
  readonly url: string
  readonly originalUrl: string
  status: number
  body: unknown
  respond?: boolean
  set(headers: Record<string, string>): void
}

/**
 * Returns a Koa middleware. A request for another path goes on to the next middleware; an error never does.
 *
 * @example
 * app.use(serve(receiver, { path: '/webhooks' }))
 * app.use(serve(collector, { path: '/analytics' }))
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (context: KoaContext, next: () => Promise<unknown>) => Promise<unknown> {
  const handle = mount(endpoint, options)

  return async function hookline(context, next) {
    const { req, res, url, originalUrl, request } = context
    const incoming = new NodeRequest(req, res, url, request as ParsedBody, req, originalUrl)
    const answer = await new Promise<EndpointAnswer | undefined>((resolve) => incoming.pass(handle, resolve))
    if (answer === undefined) return void (await next())
    if (isStreamed(answer.body)) {
      context.respond = false // Koa prints an error for each stream that its client leaves.
      return send(res, answer)
    }
    context.status = answer.status
    context.set(headersFor(answer, res))
    context.body = toNodeBody(answer.body, res)
  }
}

/**
 * Serves an endpoint from Koa 2 and 3.
 *
 * @module hookline/koa
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint, EndpointAnswer } from '../src/host/endpoint.ts'
import { requireKoa } from './shared/host.ts'
import { type Handle, mount, type ServeOptions } from './shared/mount.ts'
import { headersFor } from './shared/node-answer.ts'
import { NodeRequest, type ParsedBody } from './shared/node-request.ts'

export type { ServeOptions } from './shared/mount.ts'

/** The part of a Koa context that the middleware uses. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly request: object
  readonly url: string
  status: number
  body: unknown
  set(headers: Record<string, string>): void
}

/**
 * Returns a Koa middleware. The middleware passes a request for another path to the next middleware. If the endpoint
 * refuses a request, the middleware sends the answer of the endpoint, and does not throw.
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

  return function hookline(context, next, ...others: unknown[]) {
    requireKoa(context, next, ...others) // Throws synchronously, because Express 4 would ignore a rejected promise.
    return respond(handle, context, next)
  }
}

async function respond(handle: Handle, context: KoaContext, next: () => Promise<unknown>): Promise<void> {
  const { req, res, url, request } = context
  const incoming = new NodeRequest(req, res, url, request as ParsedBody)
  const answer = await new Promise<EndpointAnswer | undefined>((resolve, fail) =>
    incoming.answerWith(handle, resolve, fail),
  )
  if (answer === undefined) {
    await next()
    return
  }
  context.status = answer.status
  context.set(headersFor(answer, req))
  context.body = answer.body
}

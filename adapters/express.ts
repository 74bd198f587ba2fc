/**
 * Serves an endpoint from Express 4 and 5.
 *
 * @module hookline/express
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint } from '../src/host/endpoint.ts'
import { requireNode } from './shared/host.ts'
import { mount, type ServeOptions } from './shared/mount.ts'
import { FAILED, NOT_FOUND, send } from './shared/node-answer.ts'
import { NodeRequest, type ParsedBody } from './shared/node-request.ts'

export type { ServeOptions } from './shared/mount.ts'
export type { ParsedBody } from './shared/node-request.ts'

/**
 * Returns an Express handler. The handler passes a request for another path to the next handler. If the endpoint
 * refuses a request, the handler sends the answer of the endpoint, and does not call the next handler.
 *
 * @example
 * app.post('/webhooks', serve(receiver))
 * app.use('/analytics', serve(collector))
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (request: IncomingMessage & ParsedBody, response: ServerResponse, next: (error?: unknown) => void) => void {
  const handle = mount(endpoint, options)

  return function hookline(request, response, next) {
    requireNode('hookline/express', request, response)
    // node:http calls the handler without `next`.
    const goOn = next ?? ((error) => send(response, error === undefined ? NOT_FOUND : FAILED, request))
    const incoming = new NodeRequest(request, response, request.url ?? '/', request)
    incoming.answerWith(handle, (answer) => (answer === undefined ? goOn() : send(response, answer, request)), goOn)
  }
}

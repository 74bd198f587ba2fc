/**
 * Serves an endpoint from Express 4 and 5.
 *
 * @module hookline/express
 */

import type { Endpoint } from '../src/http/endpoint.ts'
import { mount, type ServeOptions } from './shared/mount.ts'
import { type NodeOutgoing, send } from './shared/node-answer.ts'
import { type NodeIncoming, NodeRequest, type ParsedBody } from './shared/node-request.ts'

export type { ServeOptions } from './shared/mount.ts'
export type { NodeOutgoing } from './shared/node-answer.ts'
export type { NodeIncoming, ParsedBody } from './shared/node-request.ts'

/**
 * Returns an Express handler, which other servers take as Node middleware. A request for another path goes on to the next
 * handler; an error never does.
 *
 * @example
 * app.post('/webhooks', serve(receiver))
 * app.use('/analytics', serve(collector))
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (request: NodeIncoming & ParsedBody, response: NodeOutgoing, next: () => void) => void {
  const handle = mount(endpoint, options)

  return function hookline(request, response, next) {
    const incoming = new NodeRequest(request, response, request.url ?? '/', request)
    incoming.pass(handle, (answer) => (answer === undefined ? next() : send(response, answer)))
  }
}

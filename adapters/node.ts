/**
 * Serves an endpoint from node:http, node:https and node:http2.
 *
 * @module hookline/node
 */

import type { Endpoint, EndpointAnswer } from '../src/host/endpoint.ts'
import { requireNode } from './shared/host.ts'
import { mount, type ServeOptions } from './shared/mount.ts'
import { FAILED, NOT_FOUND, type NodeOutgoing, send } from './shared/node-answer.ts'
import { type NodeIncoming, NodeRequest, type ParsedBody } from './shared/node-request.ts'

export type { ServeOptions } from './shared/mount.ts'
export type { NodeOutgoing } from './shared/node-answer.ts'
export type { NodeIncoming } from './shared/node-request.ts'

/**
 * Returns a request listener. The listener answers a request for another path with the status 404.
 *
 * @example
 * createServer(serve(receiver, { path: '/webhooks' })).listen(3000)
 * createServer(serve(collector, { path: '/analytics' })).listen(3000)
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (request: NodeIncoming, response: NodeOutgoing) => void {
  const handle = mount(endpoint, options)

  return function hookline(request, response) {
    requireNode('hookline/node', request, response)
    const respond = (answer: EndpointAnswer = NOT_FOUND): void => send(response, answer, request)
    const incoming = new NodeRequest(request, response, request.url ?? '/', request as ParsedBody)
    incoming.answerWith(handle, respond, () => respond(FAILED))
  }
}

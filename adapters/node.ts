/**
 * Serves an endpoint from node:http, node:https and node:http2.
 *
 * @module hookline/node
 */

import type { Endpoint } from '../src/http/endpoint.ts'
import { mount, type ServeOptions } from './shared/mount.ts'
import { type NodeOutgoing, send } from './shared/node-answer.ts'
import { type NodeIncoming, NodeRequest, type ParsedBody } from './shared/node-request.ts'

export type { ServeOptions } from './shared/mount.ts'
export type { NodeOutgoing } from './shared/node-answer.ts'
export type { NodeIncoming } from './shared/node-request.ts'

/**
 * Returns a request listener. A request for another path is answered 404.
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
    const incoming = new NodeRequest(request, response, request.url ?? '/', request as ParsedBody)
    incoming.pass(handle, (answer = NOT_FOUND) => send(response, answer))
  }
}

const NOT_FOUND = { status: 404, headers: {}, body: '' }

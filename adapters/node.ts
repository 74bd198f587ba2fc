/**
 * Serves an endpoint from node:http, node:https and node:http2.
 *
 * @module hookline/node
 */

import type { Endpoint } from '../src/protocol/endpoint.ts'
import type { ParsedBody } from './body.ts'
import { mount, type ServeOptions } from './mount.ts'
import { type NodeIncoming, type NodeOutgoing, NodeRequest, send } from './node-http.ts'

export type { ServeOptions } from './mount.ts'
export type { NodeIncoming, NodeOutgoing } from './node-http.ts'

/**
 * Makes a request listener. A path that is not the endpoint's is answered 404.
 *
 * @example
 * createServer(serve(receiver, { path: '/webhooks' })).listen(3000)
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (request: NodeIncoming, response: NodeOutgoing) => void {
  const answer = mount(endpoint, options)

  return function hookline(request, response) {
    const answered = answer(new NodeRequest(request, request.url ?? '/', request as ParsedBody))
    if (answered === undefined) send(response, NOT_FOUND)
    else void answered.then((given) => send(response, given))
  }
}

const NOT_FOUND = { status: 404, headers: {}, body: '' }

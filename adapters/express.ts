/**
 * Serves an endpoint from Express 4 and 5.
 *
 * @module hookline/express
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Endpoint } from '../src/protocol/endpoint.ts'
import type { ParsedBody } from './body.ts'
import { mount, type ServeOptions } from './mount.ts'
import { NodeRequest, send } from './node-http.ts'

export type { ParsedBody } from './body.ts'
export type { ServeOptions } from './mount.ts'

/**
 * Makes an Express handler. A path that is not the endpoint's goes on to the next handler; an error never does.
 *
 * @example
 * app.post('/webhooks', serve(receiver))
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (request: IncomingMessage & ParsedBody, response: ServerResponse, next: () => void) => void {
  const answer = mount(endpoint, options)

  return function hookline(request, response, next) {
    const answered = answer(new NodeRequest(request, request.url ?? '/', request))
    if (answered === undefined) next()
    else void answered.then((given) => send(response, given))
  }
}

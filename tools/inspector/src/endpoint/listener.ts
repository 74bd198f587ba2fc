/** Serves the page on Node.js, with the Express adapter. A stream is sent only as fast as its client reads. */

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock, EndpointAnswer, EndpointRequest } from 'hookline'
import { serve } from 'hookline/express'
import { inBackground, invalidOption, kindOf, TIMED_OUT, withTimeout } from '../../../../src/internals.ts'
import type { Inspector } from '../api.ts'

export interface PageRequest extends EndpointRequest {
  /** The complete path of the URL, including the path where the handler is mounted. */
  readonly originalPath: string
  /** A signal that is aborted when the connection closes. */
  readonly signal: AbortSignal
}

export interface PageAnswer extends Omit<EndpointAnswer, 'body'> {
  readonly body: string | AsyncIterable<string>
}

type Incoming = Parameters<Inspector['handler']>[0]
type Outgoing = Parameters<Inspector['handler']>[1]

/** The time that a client may take to read a chunk, in milliseconds. After this time, the connection is closed. */
const READ_MS = 30_000

/**
 * Returns the request listener for Node.js and the frameworks that are built on Node.js.
 *
 * @param handle Answers a request. Returns undefined for a path outside the page.
 * @param clock The system clock.
 */
export function createHandler(
  handle: (request: PageRequest) => Promise<PageAnswer> | undefined,
  clock: Clock,
): Inspector['handler'] {
  const background = inBackground(clock)

  async function stream(
    body: AsyncIterable<string>,
    { status, headers }: PageAnswer,
    response: ServerResponse,
    signal: AbortSignal,
  ): Promise<void> {
    response.writeHead(status, headers)
    response.flushHeaders()
    for await (const chunk of body) {
      if (signal.aborted) return
      if (response.write(chunk)) continue
      if ((await withTimeout(once(response, 'drain', { signal }), READ_MS, background)) === TIMED_OUT)
        return cut(response)
    }
    if (!signal.aborted) response.end()
  }

  return function hookline(request, outgoing, next) {
    requireNode(request, outgoing)
    const response = outgoing as ServerResponse // An HTTP/2 response has the same methods, but a different type.
    const gone = new AbortController()
    const { signal } = gone
    if (streamOf(outgoing).destroyed) gone.abort()
    else response.once('close', () => gone.abort())
    const { url = '', originalUrl = url } = request as Incoming & { readonly originalUrl?: string }

    function answerPage(given: EndpointRequest): Promise<EndpointAnswer> | undefined {
      const { method, query, headers, remoteAddress } = given
      const path = given.path || '/' // The path is empty if the URL is the mount path without a trailing slash.
      const readBody: EndpointRequest['readBody'] = (limit) => given.readBody(limit)
      const [originalPath = ''] = originalUrl.split('?', 1)
      const asked = { method, path, query, headers, remoteAddress, readBody, originalPath, signal }
      return handle(asked)?.then(async (answered) => {
        const { body } = answered
        if (typeof body === 'string') return { ...answered, body }
        if (method !== 'HEAD') await stream(body, answered, response, signal).catch(() => cut(outgoing))
        return { ...answered, body: '' } // The stream has been sent, or the answer to HEAD has no body.
      })
    }

    serve({ handle: answerPage })(request as IncomingMessage, response, next as (error?: unknown) => void)
  }
}

function requireNode(request: Incoming | undefined, response: Outgoing | undefined): void {
  if (typeof request?.headers === 'object' && typeof response?.writeHead === 'function') return
  const advice = 'Pass the handler to Express or node:http. For Koa and Fastify, see the inspector guide.'
  const found = `${kindOf(request)} and ${kindOf(response)}`
  throw invalidOption('inspector.handler', 'must be called with a Node.js request and response', found, advice)
}

/** Closes the connection, so that the client does not mistake an incomplete answer for a complete one. */
function cut(response: Outgoing): void {
  // Without an error, a destroyed HTTP/2 stream ends as if it were complete.
  streamOf(response).destroy('stream' in response ? new Error('The answer is incomplete.') : undefined)
}

/** Returns the stream of an HTTP/2 response, because the response does not show how the stream ended. Returns any other response itself. */
function streamOf(response: Outgoing) {
  return 'stream' in response ? response.stream : response
}

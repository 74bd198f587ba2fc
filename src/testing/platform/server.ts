/** Serves the collector on a real socket, and notes what it refuses. */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Collector } from '../../collector/api.ts'
import { bodyAborted, bodyTooLarge, type EndpointBody } from '../../http/body.ts'
import type { TextAnswer } from '../../http/endpoint.ts'
import type { Activity } from './activity.ts'
import type { RefusedCall } from './api.ts'

/** A collector that listens. */
export interface CollectorServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  close(): Promise<void>
}

/** Starts to listen on the loopback interface. */
export async function startServer(
  collector: Collector,
  port: number,
  activity: Activity,
  refuse: (call: RefusedCall) => void,
): Promise<CollectorServer> {
  const server = createServer(async (request, response) => {
    const [path = '', query = ''] = (request.url ?? '').split(/\?(.*)/s) // Not a URL: `//v1/batch` has a host in it.
    const { status, headers, body } = await activity.track(answer(request, path, query))
    for (const call of listRefused(path, status, body)) refuse(call)
    response.writeHead(status, headers).end(body)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => close(server),
  }

  async function answer(request: IncomingMessage, path: string, query: string): Promise<TextAnswer> {
    const { method = '', headers, socket } = request
    const { signal } = new AbortController() // The collector does not look at it.
    const readBody = (limit: number): Promise<EndpointBody> => readAll(request, limit)
    const { remoteAddress } = socket
    const answered = collector.handle({ method, path, query, headers, remoteAddress, signal, readBody })
    return answered ?? { status: 404, headers: {}, body: JSON.stringify(unknownPath(path, collector.routes)) }
  }
}

/** Reads to the end also what is too long, so that the client gets its answer. */
async function readAll(request: IncomingMessage, limit: number): Promise<EndpointBody> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request) {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
    }
  } catch {
    throw bodyAborted()
  }
  if (size > limit) throw bodyTooLarge(limit)
  return { bytes: Buffer.concat(chunks), source: 'stream' }
}

function unknownPath(path: string, routes: readonly string[]): { code: string; detail: string } {
  const detail = `The path must be one of the collector's: ${routes.join(', ')}. Got ${path}. Check the endpoint of the client.`
  return { code: 'path_unknown', detail }
}

function listRefused(path: string, status: number, body: string): RefusedCall[] {
  if (body === '') return []
  const { code, detail, refused = [] } = JSON.parse(body)
  if (status !== 200) return [{ path, status, code, detail }]
  return refused.map((call: RefusedCall) => ({ path, status, code: call.code, detail: call.detail, index: call.index }))
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}

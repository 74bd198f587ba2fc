/** What stands between the clients and the collector: it passes every request and every answer on, and keeps them. */

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { until } from '../../support/until.ts'

export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Its body, inflated and parsed. */
  readonly json: Readonly<Record<string, unknown>>
  readonly status: number
}

/** Starts it. It passes on to the `port` of the moment, and waits while there is none. `waiting` requests have no answer yet. */
export async function startTap() {
  const sent: Sent[] = []
  const tap = { sent, waiting: 0, port: undefined as number | undefined, url: '', close }
  const server = createServer(async (incoming, outgoing) => {
    tap.waiting += 1
    outgoing.on('close', () => {
      tap.waiting -= 1
    })
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    const { method = '', url: path = '', headers } = incoming
    await until(() => tap.port !== undefined)
    const passed = send({ host: '127.0.0.1', port: tap.port, method, path, headers, agent: false }, (answer) => {
      const status = answer.statusCode ?? 0
      sent.push({ method, path, headers, json: parse(body, headers), status })
      outgoing.writeHead(status, answer.headers)
      answer.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    passed.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  tap.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return tap

  function close(): void {
    server.close()
    server.closeAllConnections()
  }
}

function parse(body: Buffer, headers: IncomingHttpHeaders): Sent['json'] {
  if (body.length === 0) return {}
  return JSON.parse((headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString())
}

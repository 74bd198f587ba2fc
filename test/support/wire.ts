/** Sends requests byte by byte over real sockets, and in-process to a Fetch handler. */

import http from 'node:http'
import http2 from 'node:http2'

export interface Wire {
  readonly method?: string
  readonly path?: string
  /** A list sends the header more than once. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Written one after the other, each flushed before the next. */
  readonly chunks: readonly Uint8Array[]
  /** Declare the length in advance; without, the body is chunked. Default: the length of the chunks. */
  readonly contentLength?: number | undefined
  readonly chunked?: boolean
  /** What follows the chunks: the end, nothing (the body stays open), or the client going away. */
  readonly ending?: 'end' | 'nothing' | 'abort'
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export type Send = (wire: Wire) => Promise<Reply | undefined>

function headersOf(wire: Wire): Record<string, string | readonly string[]> {
  const length = wire.contentLength ?? wire.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  return wire.chunked ? { ...wire.headers } : { ...wire.headers, 'content-length': String(length) }
}

/** Undefined stands for a connection that ended without an answer. */
export function sendHttp1(port: number): Send {
  return (wire) =>
    new Promise((resolve, reject) => {
      const request = http.request({
        host: '127.0.0.1',
        port,
        path: wire.path ?? '/webhooks',
        method: wire.method ?? 'POST',
        headers: headersOf(wire) as http.OutgoingHttpHeaders,
        agent: false,
      })
      request.setNoDelay(true)
      request.on('response', async (response) => {
        const parts: Uint8Array[] = []
        for await (const part of response) parts.push(part)
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: Buffer.concat(parts).toString() })
        if (wire.ending === 'nothing') request.destroy()
      })
      request.on('error', (error) => (wire.ending === 'abort' ? resolve(undefined) : reject(error)))
      void writeAll(request, () => request.destroy(), wire)
    })
}

export function sendHttp2(port: number): Send {
  return (wire) =>
    new Promise((resolve, reject) => {
      const session = http2.connect(`http://127.0.0.1:${port}`)
      session.on('error', reject)
      const request = session.request(
        { ':method': wire.method ?? 'POST', ':path': wire.path ?? '/webhooks', ...(headersOf(wire) as object) },
        { endStream: false },
      )
      let headers: Reply['headers'] = {}
      const parts: Uint8Array[] = []
      request.on('response', (received) => {
        headers = received as Reply['headers']
      })
      request.on('data', (part) => parts.push(part))
      request.on('end', () => {
        session.destroy()
        const status = Number(headers[':status'])
        resolve(Number.isNaN(status) ? undefined : { status, headers, text: Buffer.concat(parts).toString() })
      })
      request.on('error', reject)
      void writeAll(request, () => session.destroy(), wire)
    })
}

interface Outgoing {
  write(chunk: Uint8Array, written: (error?: Error | null) => void): unknown
  end(): unknown
  readonly destroyed: boolean
  flushHeaders?(): void
}

async function writeAll(request: Outgoing, goAway: () => void, { chunks, ending = 'end' }: Wire): Promise<void> {
  request.flushHeaders?.()
  for (const chunk of chunks) {
    if (request.destroyed) return
    await new Promise<void>((resolve) => void request.write(chunk, () => resolve()))
  }
  if (ending === 'end') request.end()
  if (ending !== 'abort') return
  await new Promise((resolve) => setImmediate(resolve))
  goAway()
}

export function sendFetch(handler: (request: Request) => Promise<Response>): Send {
  return async (wire) => {
    const headers = new Headers()
    for (const [name, values] of Object.entries(headersOf(wire))) {
      for (const value of [values].flat()) headers.append(name, value)
    }
    const { method = 'POST', ending = 'end', chunks } = wire
    const hasBody = method !== 'GET'
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk)
        if (ending === 'end') controller.close()
        if (ending === 'abort') controller.error(new DOMException('aborted', 'AbortError'))
      },
    })
    const request = new Request(`http://localhost${wire.path ?? '/webhooks'}`, {
      method,
      headers,
      ...(hasBody ? { body, duplex: 'half' } : {}),
    } as RequestInit)
    const response = await handler(request)
    return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
  }
}

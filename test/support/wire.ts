/** Sends requests byte by byte over real sockets, and in-process to a Fetch handler. */

import http from 'node:http'
import http2 from 'node:http2'
import { Readable } from 'node:stream'

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
  /** What follows the chunks: the end, nothing (the body stays open), or the client disconnects. */
  readonly ending?: 'end' | 'nothing' | 'abort'
}

interface ReplyHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Reply extends ReplyHead {
  readonly text: string
}

interface OpenReply extends ReplyHead {
  readonly body: AsyncIterable<Uint8Array>
}

/** The client disconnects when `leave` aborts. Undefined stands for one that did before it had an answer. */
type Open = (wire: Wire, leave: AbortSignal) => Promise<OpenReply | undefined>

export interface Client {
  /** Returns undefined when it disconnected before it had an answer. */
  send(wire: Wire): Promise<Reply | undefined>
}

export function headersOf(wire: Wire): Record<string, string | readonly string[]> {
  const length = wire.contentLength ?? wire.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  return wire.chunked ? { ...wire.headers } : { ...wire.headers, 'content-length': String(length) }
}

export function clientOf(open: Open): Client {
  return {
    async send(wire) {
      const left = new AbortController()
      const reply = await open(wire, left.signal)
      if (reply === undefined) return undefined
      const { status, headers, body } = reply
      const chunks: Uint8Array[] = []
      for await (const chunk of body) chunks.push(chunk)
      if (wire.ending === 'nothing') left.abort()
      return { status, headers, text: Buffer.concat(chunks).toString() }
    },
  }
}

export function clientOfHttp1(port: number): Client {
  return clientOf(
    (wire, leave) =>
      new Promise((resolve, reject) => {
        const request = http.request({
          host: '127.0.0.1',
          port,
          path: wire.path ?? '/webhooks',
          method: wire.method ?? 'POST',
          headers: { connection: 'keep-alive', ...headersOf(wire) } as http.OutgoingHttpHeaders,
          agent: false,
        })
        request.setNoDelay(true)
        request.on('response', (response) =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: response }),
        )
        request.on('error', (error) => (wire.ending === 'abort' || leave.aborted ? resolve(undefined) : reject(error)))
        leave.addEventListener('abort', () => request.destroy())
        void writeAll(request, () => request.destroy(), wire)
      }),
  )
}

export function clientOfHttp2(port: number): Client {
  return clientOf(
    (wire, leave) =>
      new Promise((resolve, reject) => {
        const session = http2.connect(`http://127.0.0.1:${port}`)
        session.on('error', reject)
        const request = session.request(
          { ':method': wire.method ?? 'POST', ':path': wire.path ?? '/webhooks', ...(headersOf(wire) as object) },
          { endStream: false },
        )
        request.on('response', (headers) =>
          resolve({ status: Number(headers[':status']), headers: headers as Reply['headers'], body: request }),
        )
        request.on('error', reject)
        request.on('close', () => resolve(undefined))
        request.on('end', () => session.destroy())
        leave.addEventListener('abort', () => session.destroy())
        void writeAll(request, () => session.destroy(), wire)
      }),
  )
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

export function clientOfFetch(handler: (request: Request) => Promise<Response>): Client {
  return clientOf(async (wire, leave) => {
    const headers = new Headers()
    for (const [name, values] of Object.entries(headersOf(wire))) {
      for (const value of [values].flat()) headers.append(name, value)
    }
    const { method = 'POST', ending = 'end', chunks } = wire
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const gone = new AbortController()
    leave.addEventListener('abort', () => gone.abort())
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk)
        if (ending === 'end') controller.close()
        if (ending !== 'abort') return
        setImmediate(() => {
          controller.error(new DOMException('aborted', 'AbortError'))
          gone.abort()
        })
      },
    })
    const request = new Request(`http://localhost${wire.path ?? '/webhooks'}`, {
      method,
      headers,
      signal: gone.signal,
      ...(hasBody ? { body, duplex: 'half' } : {}),
    } as RequestInit)
    const response = await handler(request)
    const answered = response.body ?? Readable.from([])
    return { status: response.status, headers: Object.fromEntries(response.headers), body: answered }
  })
}

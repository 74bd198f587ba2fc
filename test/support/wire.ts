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
  /** What follows the chunks: the end, nothing (the body stays open), or the client disconnects. */
  readonly ending?: 'end' | 'nothing' | 'abort'
  /** The client disconnects when it aborts. */
  readonly leave?: AbortSignal
}

interface ReplyHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface Reply extends ReplyHead {
  readonly text: string
}

/** An answer whose body is read only when the test asks for the next chunk. */
export interface OpenReply extends ReplyHead {
  /** The next chunk, or undefined at the end. Rejects when the connection closes before the end. */
  read(): Promise<Uint8Array | undefined>
}

/** Undefined stands for a client that disconnected before it had an answer. */
type Send = (wire: Wire) => Promise<Reply | undefined>
type Open = (wire: Wire) => Promise<OpenReply | undefined>

export interface Client {
  readonly send: Send
  readonly open: Open
}

export function headersOf(wire: Wire): Record<string, string | readonly string[]> {
  const length = wire.contentLength ?? wire.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  return wire.chunked ? { ...wire.headers } : { ...wire.headers, 'content-length': String(length) }
}

export async function readAll({ read }: OpenReply): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for (let chunk = await read(); chunk !== undefined; chunk = await read()) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export function clientOf(open: Open): Client {
  return {
    open,
    async send(wire) {
      const left = new AbortController()
      const reply = await open({ leave: left.signal, ...wire })
      if (reply === undefined) return undefined
      const text = (await readAll(reply)).toString()
      if (wire.ending === 'nothing') left.abort()
      return { status: reply.status, headers: reply.headers, text }
    },
  }
}

function reader(body: AsyncIterable<Uint8Array>): OpenReply['read'] {
  const chunks = body[Symbol.asyncIterator]()
  return async () => {
    const { done, value } = await chunks.next()
    return done ? undefined : value
  }
}

export function clientOfHttp1(port: number): Client {
  return clientOf(
    (wire) =>
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
        request.on('response', (response) =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, read: reader(response) }),
        )
        request.on('error', (error) =>
          wire.ending === 'abort' || wire.leave?.aborted ? resolve(undefined) : reject(error),
        )
        wire.leave?.addEventListener('abort', () => request.destroy())
        void writeAll(request, () => request.destroy(), wire)
      }),
  )
}

export function clientOfHttp2(port: number): Client {
  return clientOf(
    (wire) =>
      new Promise((resolve, reject) => {
        const session = http2.connect(`http://127.0.0.1:${port}`)
        session.on('error', reject)
        const request = session.request(
          { ':method': wire.method ?? 'POST', ':path': wire.path ?? '/webhooks', ...(headersOf(wire) as object) },
          { endStream: false },
        )
        request.on('response', (headers) =>
          resolve({ status: Number(headers[':status']), headers: headers as Reply['headers'], read: reader(request) }),
        )
        request.on('error', reject)
        request.on('close', () => resolve(undefined))
        request.on('end', () => session.destroy())
        wire.leave?.addEventListener('abort', () => session.destroy())
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
  return clientOf(async (wire) => {
    const headers = new Headers()
    for (const [name, values] of Object.entries(headersOf(wire))) {
      for (const value of [values].flat()) headers.append(name, value)
    }
    const { method = 'POST', ending = 'end', chunks } = wire
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const gone = new AbortController()
    wire.leave?.addEventListener('abort', () => gone.abort())
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
    const chunksOfBody = response.body?.getReader()
    wire.leave?.addEventListener('abort', () => chunksOfBody?.cancel())
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      read: async () => (await chunksOfBody?.read())?.value,
    }
  })
}

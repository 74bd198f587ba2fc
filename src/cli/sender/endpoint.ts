/** The endpoint that a sender is checked at: reads requests, answers them as the ledger says, and sees when a sender gives up. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { createCertificate } from '../../testing/certificates.ts'
import { joinHeaders } from '../../testing/recorder.ts'
import { UsageError } from '../terminal.ts'
import type { Arrival, Request } from './messages.ts'

/** The path of the URL. */
export const PATH = '/webhooks'

/** The longest that a sender is left without an answer. */
export const SILENCE_MS = 10_000

/** The most bytes of a body. */
const LIMIT = 5_000_000

/** Where to listen. */
export interface Place {
  readonly host: string
  readonly port: number
}

/** An endpoint that listens. */
export interface SenderEndpoint {
  readonly url: string
  close(): void
}

/** What the endpoint tells. */
export interface Events {
  /** Notes a request, and says what it is answered. */
  add(request: Request): Arrival
  /** Called when a request was answered or given up. */
  onEnd(arrival: Arrival): void
}

/** @throws UsageError for an address that cannot be listened at. */
export async function startEndpoint(place: Place, { add, onEnd }: Events): Promise<SenderEndpoint> {
  const server = createServer(async (request, response) => {
    const at = performance.now()
    const bytes = await readAll(request)
    if (bytes === undefined) return void response.destroy()
    const { method = '', url = '', rawHeaders } = request
    const [path = ''] = url.split('?', 1)
    const arrival = add({ method, path, headers: joinHeaders(rawHeaders), bytes, at })
    respond(arrival, response, onEnd)
  })
  const port = await listen(server, place)
  const url = `http://${urlHost(place.host)}:${port}${PATH}`
  return { url, close: () => void server.close().closeAllConnections() }
}

/**
 * What a sender did at an endpoint whose certificate is self-signed. `refused`: it began the handshake, and ended the connection
 * without a request. `plain`: it spoke http.
 */
export type Handshake = 'refused' | 'sent' | 'plain'

/** The beginning of a handshake is longer. What is shorter is no sender: a probe of the port. */
const HELLO_BYTES = 50

/** Starts an endpoint with a self-signed certificate for `localhost` and 127.0.0.1. */
export async function startSecureEndpoint(
  place: Place,
  onHandshake: (handshake: Handshake) => void,
): Promise<SenderEndpoint> {
  const sent = new Set<number | undefined>() // The socket of TLS and the one below it have the same remote port.
  const server = createSecureServer(createCertificate('self_signed').server, (request, response) => {
    sent.add(request.socket.remotePort)
    onHandshake('sent')
    request.resume()
    response.writeHead(200, { 'content-length': '0' }).end()
  })
  server.on('connection', (socket: Socket) => {
    const { remotePort } = socket
    // Some clients end the handshake with an alert; others just close.
    socket.on('close', () => !sent.delete(remotePort) && socket.bytesRead > HELLO_BYTES && onHandshake('refused'))
  })
  server.on('tlsClientError', ({ code }: NodeJS.ErrnoException) => {
    if (code === 'ERR_SSL_HTTP_REQUEST') onHandshake('plain')
  })
  const port = await listen(server, place)
  const host = place.host === '127.0.0.1' ? 'localhost' : urlHost(place.host)
  return { url: `https://${host}:${port}${PATH}`, close: () => void server.close().closeAllConnections() }
}

async function listen(server: ReturnType<typeof createServer>, { host, port }: Place): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      const reason = code === 'EADDRINUSE' ? 'another process listens there. Pass another --port' : message
      reject(new UsageError(`Cannot listen at ${urlHost(host)}:${port}: ${reason}.`))
    })
    server.listen(port, host, resolve)
  })
  return (server.address() as AddressInfo).port
}

function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

async function readAll(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of request) {
      size += chunk.length
      if (size > LIMIT) return undefined
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  } catch {
    return undefined // The sender ended the connection.
  }
}

function respond(arrival: Arrival, response: ServerResponse, onEnd: (arrival: Arrival) => void): void {
  const { status, delayMs = 0 } = arrival.answer
  const timer = setTimeout(
    () => {
      if (status === undefined) response.destroy()
      else response.writeHead(status, { 'content-length': '0' }).end()
    },
    status === undefined ? SILENCE_MS : delayMs,
  )
  response.on('close', () => {
    clearTimeout(timer)
    arrival.endedAt = performance.now()
    arrival.isAnswered = response.writableFinished
    onEnd(arrival)
  })
}

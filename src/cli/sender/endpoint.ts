/** The endpoint that a sender is checked at: reads requests, answers them as the ledger says, and sees when a sender gives up. */

import { createServer, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { readStream } from '../../http/read-stream.ts'
import { createCertificate } from '../../testing/certificates.ts'
import { joinHeaders } from '../../testing/recorder.ts'
import { listenOn } from '../server.ts'
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
  close(): Promise<void>
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
    const body = await readStream(request, LIMIT, request.headers['content-length']).catch(() => undefined)
    if (body === undefined) return void response.destroy()
    const { bytes } = body
    const { method = '', url = '', rawHeaders } = request
    const [path = ''] = url.split('?', 1)
    const arrival = add({ method, path, headers: joinHeaders(rawHeaders), bytes, at })
    respond(arrival, response, onEnd)
  })
  return listenAt(place, server)
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
  return listenAt(place, server)
}

async function listenAt({ host, port }: Place, server: Server): Promise<SenderEndpoint> {
  const { origin, close } = await listenOn('--port', server, port, host)
  return { url: origin + PATH, close }
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

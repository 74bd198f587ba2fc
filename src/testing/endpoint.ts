/** A webhook endpoint on a real socket that answers as a test tells it to. */

import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { refuseUnknown, requireWhole } from '../protocol/options.ts'
import { CERTIFICATE_FAULTS, type CertificateFault, createCertificate } from './certificates.ts'
import { watchConnections } from './connections.ts'
import { play } from './play.ts'
import { createRecorder, joinHeaders, type Recorded } from './recorder.ts'
import { createPrompter, type Script } from './script.ts'

/** What `startEndpoint` takes. */
export interface EndpointOptions {
  /** What to do with each request, one step for each; the last is repeated. Default `[200]`. */
  readonly script?: Script
  /** The path of the `url`; every other path is answered just the same. Default `/webhooks`. */
  readonly path?: string
  /** Where to listen: the port of an endpoint that was closed, to start it again. Default 0: any that is free. */
  readonly port?: number
  /** Listens on https, with a certificate of this kind. Default: http. */
  readonly tls?: CertificateFault
}

/** A webhook endpoint on this machine. */
export interface ScriptedEndpoint extends Recorded, AsyncDisposable {
  /** `http://127.0.0.1:<port>/webhooks`, or `https://localhost:<port>/webhooks`. */
  readonly url: string
  /** How many connections there were so far, those included whose TLS handshake failed. */
  readonly connections: number
  /** How many bytes of requests came so far, whole requests or not; over TLS only what was inside. */
  readonly bytesReceived: number
  /** Forgets what is left of the script and goes on with these steps. */
  script(steps: Script): void
  /**
   * Ends every connection and stops listening.
   *
   * @throws What a function of the script threw, or what was wrong with its step (as a rejection); its request was
   * answered 500.
   */
  close(): Promise<void>
}

/** An endpoint that has a certificate. */
export interface SecureEndpoint extends ScriptedEndpoint {
  /** What a client must trust to reach it, PEM: its authority, or the certificate itself when it is self-signed. */
  readonly ca: string
}

/**
 * Starts an endpoint on this machine.
 *
 * @throws TypeError (as a rejection) that names the option.
 * @throws Error (as a rejection) with the code `EADDRINUSE` when the port is taken.
 * @example
 * const endpoint = await startEndpoint({ script: [500, 'hang', 200] })
 * // … what is tested posts to endpoint.url …
 * const [first] = await endpoint.received(3)
 * await endpoint.close() // or: await using endpoint = …
 */
export async function startEndpoint(options: EndpointOptions & { tls: CertificateFault }): Promise<SecureEndpoint>
export async function startEndpoint(options?: EndpointOptions): Promise<ScriptedEndpoint>
export async function startEndpoint(options: EndpointOptions = {}): Promise<ScriptedEndpoint> {
  const { script, path, port: wantedPort, tls } = readOptions(options)
  const prompter = createPrompter(script)
  const recorder = createRecorder()
  const faults: unknown[] = []
  const certificate = tls === undefined ? undefined : createCertificate(tls)
  const server = certificate === undefined ? http.createServer() : https.createServer(certificate.server)
  server.keepAliveTimeout = 0 // A connection that ends by itself would be a step that no script has.
  const connections = watchConnections(server, certificate !== undefined)

  server.on('request', async (request, response) => {
    const cue = prompter.next()
    const reset = (): void => connections.reset(request.socket)
    if ('kind' in cue && cue.kind === 'reset' && cue.after === 'headers') {
      reset()
      return
    }
    const bytes = await readAll(request)
    if (bytes === undefined) return
    const { method = '', url = '', rawHeaders } = request
    const headers = joinHeaders(rawHeaders)
    const recorded = recorder.add({ method, url: origin + url, path: url, headers, bytes, at: Date.now() })
    try {
      await play('kind' in cue ? cue : await cue(recorded), response, reset)
    } catch (fault) {
      faults.push(fault)
      response.writeHead(500, { 'content-length': '0' }).end() // Node remembers the length of a head that it refused.
    }
  })
  server.listen(wantedPort, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const origin = certificate === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`

  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    connections.end()
    await closed
    if (faults.length > 0) throw faults[0]
  }

  return {
    ...(certificate !== undefined && { ca: certificate.ca }),
    url: origin + path,
    requests: recorder.requests,
    received: recorder.received,
    get messages() {
      return recorder.messages
    },
    get connections() {
      return connections.count
    },
    get bytesReceived() {
      return connections.bytes
    },
    script: prompter.replace,
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** @throws TypeError that names the option. */
function readOptions(options: EndpointOptions): {
  script: Script | undefined
  path: string
  port: number
  tls: CertificateFault | undefined
} {
  refuseUnknown(options, ['script', 'path', 'port', 'tls'])
  const { script, path = '/webhooks', port = 0, tls } = options
  if (typeof path !== 'string' || !path.startsWith('/')) throw new TypeError("path: must begin with '/'.")
  requireWhole('port', port, 0, 65_535)
  if (tls !== undefined && !CERTIFICATE_FAULTS.includes(tls)) {
    throw new TypeError(`tls: must be one of ${CERTIFICATE_FAULTS.join(', ')}.`)
  }
  return { script, path, port, tls }
}

/** The whole body, or undefined when the client went away in the middle of it: that is no request. */
async function readAll(request: http.IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return undefined
  }
  return Buffer.concat(chunks)
}

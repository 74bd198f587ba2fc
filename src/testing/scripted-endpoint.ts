/** A webhook endpoint on a real socket that responds according to a script. */

import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { readStream } from '../host/read-stream.ts'
import { invalidOption, requireInteger, requireOneOf, requireOptions, show } from '../kit/checks.ts'
import { CERTIFICATE_FAULTS, type CertificateFault, createCertificate } from './certificates.ts'
import { createRecorder, joinHeaders, type Recorded, type RequestParts } from './recorder.ts'
import { respond } from './respond.ts'
import { createScript, type Script } from './script.ts'
import { listen, watchConnections } from './server.ts'

/** Options of `startEndpoint`. */
export interface EndpointOptions {
  /** One step for each request; the last step is repeated. Default `[200]`. */
  readonly script?: Script
  /** The path of `url`. Requests to other paths get the same responses. Default `/webhooks`. */
  readonly path?: string
  /** The port. To start a closed endpoint again, pass the port that it had. Default 0: any free port. */
  readonly port?: number
  /** The fault of the certificate with which the endpoint serves https. Default: the endpoint serves http. */
  readonly tls?: CertificateFault
}

/** A webhook endpoint on this machine. */
export interface ScriptedEndpoint extends Recorded, AsyncDisposable {
  /** The URL of the endpoint: `http://127.0.0.1:<port>/webhooks` or, with `tls`, `https://localhost:<port>/webhooks`. */
  readonly url: string
  /** The number of connections opened so far, including those whose TLS handshake failed. */
  readonly connections: number
  /** The number of bytes received so far, including those of incomplete requests. Over TLS, decrypted bytes are counted. */
  readonly bytesReceived: number
  /** Continues with these steps instead of the rest of the script. */
  script(steps: Script): void
  /**
   * Ends every connection and stops listening.
   *
   * @throws (as a rejection) the error of the first step that failed, for example because its function threw. The request of that step was
   *   answered with 500.
   */
  close(): Promise<void>
}

/** An endpoint that serves https with its own certificate. */
export interface SecureEndpoint extends ScriptedEndpoint {
  /** The certificate that a client must trust, as PEM: the authority's, or the endpoint's own when it is self-signed. */
  readonly ca: string
}

/**
 * Starts an endpoint on this machine.
 *
 * @throws TypeError (as a rejection) that names the invalid option.
 * @throws Error (as a rejection) with the code `EADDRINUSE` when the port is already in use.
 * @example
 * const endpoint = await startEndpoint({ script: [500, 'hang', 200] })
 * // … the code under test posts to endpoint.url …
 * const [first] = await endpoint.received(3)
 * await endpoint.close() // or: await using endpoint = …
 */
export async function startEndpoint(options: EndpointOptions & { tls: CertificateFault }): Promise<SecureEndpoint>
export async function startEndpoint(options?: EndpointOptions): Promise<ScriptedEndpoint>
export async function startEndpoint(options: EndpointOptions = {}): Promise<ScriptedEndpoint> {
  requireOptions('startEndpoint', options, ['script', 'path', 'port', 'tls'])
  const { script: steps, path = '/webhooks', port = 0, tls } = options
  if (typeof path !== 'string' || !path.startsWith('/')) {
    throw invalidOption('path', "must begin with '/'", show(path), "Pass a path, for example '/webhooks'.")
  }
  requireInteger('port', port, 0, 65_535)
  if (tls !== undefined) requireOneOf('tls', tls, CERTIFICATE_FAULTS)
  const script = createScript(steps)
  const recorder = createRecorder()
  const faults: unknown[] = []
  const certificate = tls === undefined ? undefined : createCertificate(tls)
  const server = certificate === undefined ? http.createServer() : https.createServer(certificate.server)
  server.keepAliveTimeout = 0 // Idle connections stay open, because only the script ends connections.
  const connections = watchConnections(server)

  server.on('request', async (request, response) => {
    const planned = script.next()
    const reset = (): void => connections.reset(request.socket)
    if ('kind' in planned && planned.kind === 'reset' && planned.after === 'headers') {
      reset()
      return
    }
    const parts = await readParts(request, origin)
    if (parts === undefined) return // The client has ended the connection.
    const recorded = recorder.add(parts)
    try {
      await respond('kind' in planned ? planned : await planned(recorded), response, reset)
    } catch (fault) {
      faults.push(fault)
      // Node.js keeps the `content-length` of headers that it refused, so the header is set again.
      response.writeHead(500, { 'content-length': '0' }).end()
    }
  })
  const { origin, close: stop } = await listen(server, port)

  const close = async (): Promise<void> => {
    connections.destroyConnections()
    await stop()
    if (faults.length > 0) throw faults[0]
  }

  const endpoint: ScriptedEndpoint = {
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
    script: script.replace,
    close,
    [Symbol.asyncDispose]: close,
  }
  return certificate === undefined ? endpoint : Object.assign(endpoint, { ca: certificate.ca })
}

/** Reads a request to its end. Returns undefined if the connection ends first. */
async function readParts(request: IncomingMessage, origin: string): Promise<RequestParts | undefined> {
  const body = await readStream(request, Number.POSITIVE_INFINITY, undefined).catch(() => undefined)
  if (body === undefined) return undefined
  const { method = '', url = '', rawHeaders } = request
  return { method, url: origin + url, path: url, headers: joinHeaders(rawHeaders), bytes: body.bytes, at: new Date() }
}

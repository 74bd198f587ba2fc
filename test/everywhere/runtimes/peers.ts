/** What the programs post to: endpoints of this process, which record what arrived. */

import { once } from 'node:events'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createRawServer, type Server } from 'node:net'
import type { SecureVersion } from 'node:tls'
import { createCertificate } from '../../../src/testing/certificates.ts'
import { type Script, startEndpoint } from '../../../src/testing.ts'

const VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3']
/** No server has this port. One that was free a moment ago can be taken by another program. */
const REFUSED = 'http://127.0.0.1:1/'
const FAULTS = ['self_signed', 'expired', 'wrong_name', 'private_ca'] as const

export type Peers = Awaited<ReturnType<typeof startPeers>>

export async function startPeers() {
  const start = (script: Script) => startEndpoint({ script })
  const endpoints = {
    ok: await start([200]),
    reset: await start(['reset']),
    garbage: await start(['garbage']),
    hang: await start(['hang']),
    drip: await start(['drip']),
    guarded: await start([200]),
    retry: await start([503, 200]),
    redrive: await start([410, 200]),
    circuit: await start([503, 200]),
    endless: await startRaw(`HTTP/1.1 200 ${'x'.repeat(2 * 1024 * 1024)}`),
  }
  const tls = await Promise.all(VERSIONS.flatMap((version) => FAULTS.map((fault) => startTls(fault, version))))
  const urls = Object.fromEntries(Object.entries(endpoints).map(([name, { url }]) => [name, url]))
  return {
    ...endpoints,
    refused: { url: REFUSED },
    tls,
    argument: JSON.stringify({ ...urls, refused: REFUSED, tls: tls.map(({ name, url, ca }) => ({ name, url, ca })) }),
    async close() {
      await Promise.all([...Object.values(endpoints), ...tls].map((peer) => peer.close()))
    },
  }
}

async function startRaw(text: string) {
  const server = createRawServer((socket) => {
    socket.once('data', () => socket.write(text)).on('error', () => {})
  })
  return { url: `http://127.0.0.1:${await portOf(server)}/`, close: async () => void server.close() }
}

async function portOf(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

/** An https server with a certificate that has this fault. Each request is answered 200, on a connection of its own. */
async function startTls(fault: (typeof FAULTS)[number], version: SecureVersion) {
  const { server: keys, ca } = createCertificate(fault)
  let bytes = 0
  const server = createServer({ ...keys, minVersion: version, maxVersion: version }, (request, response) => {
    request.resume()
    response.setHeader('connection', 'close').end()
  })
  server.on('secureConnection', (socket) => socket.on('data', (chunk: Buffer) => (bytes += chunk.length)))
  server.on('tlsClientError', () => {})
  const port = await portOf(server)
  return {
    name: `${fault} over ${version}`,
    fault,
    ca,
    url: `https://localhost:${port}/`,
    /** How many bytes of requests arrived. */
    get bytes() {
      return bytes
    },
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

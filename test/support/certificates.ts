/** Certificates of any shape, and TLS servers that show them. */

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TlsOptions } from 'node:tls'
import { onTestFinished } from 'vitest'
import { bitString, der, integer, objectId, sequence, utcTime } from '../../src/testing/der.ts'

export interface Party {
  readonly name: Buffer
  readonly keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
}

export function createParty(commonName: string, keys: Party['keys'] = generateKeyPairSync('ec', P256)): Party {
  const text = (type: string, value: string) => der(0x31, sequence(objectId(type), der(0x0c, Buffer.from(value))))
  const organization = randomBytes(8).toString('hex')
  return { name: sequence(text('2.5.4.10', organization), text('2.5.4.3', commonName)), keys }
}

const P256 = { namedCurve: 'P-256' }

const DIGESTS = { sha1: '1.2.840.10045.4.1', sha256: '1.2.840.10045.4.3.2' }

/** A certificate as PEM: of `subject`, signed with the P-256 key of `issuer`. */
export function certify(
  subject: Party,
  issuer: Party,
  { extensions = [NAMED], until = '20491231235959Z', digest = 'sha256' as keyof typeof DIGESTS } = {},
): string {
  const algorithm = sequence(objectId(DIGESTS[digest]))
  const content = sequence(
    der(0xa0, integer(2)),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    issuer.name,
    sequence(utcTime('20000101000000Z'), utcTime(until)),
    subject.name,
    subject.keys.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const bytes = sequence(content, algorithm, bitString(sign(digest, content, issuer.keys.privateKey)))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

export const AUTHORITY = [
  sequence(objectId('2.5.29.19'), der(0x01, Buffer.from([0xff])), der(0x04, sequence(der(0x01, Buffer.from([0xff]))))),
]

/** The extension that names the host, "localhost": a subject alternative name. */
const NAMED = sequence(objectId('2.5.29.17'), der(0x04, sequence(der(0x82, Buffer.from('localhost')))))

export function keyOf({ keys }: Party): string {
  return keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

/** An https server that responds to each request with 200 and closes the connection. */
export async function serveTls(options: TlsOptions) {
  const seen = { connections: 0, open: 0, resumed: 0, bytes: 0, requests: 0 }
  const server = createServer(options, (request, response) => {
    seen.requests += 1
    request.resume()
    response.setHeader('connection', 'close').end('{}')
  })
  server.on('connection', (socket) => {
    seen.connections += 1
    seen.open += 1
    socket.on('close', () => {
      seen.open -= 1
    })
  })
  server.on('secureConnection', (socket) => {
    if (socket.isSessionReused()) seen.resumed += 1
    socket.on('data', (chunk: Buffer) => {
      seen.bytes += chunk.length
    })
  })
  server.on('tlsClientError', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { server, seen, port, url: `https://localhost:${port}/` }
}

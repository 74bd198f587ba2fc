/** The certificates of scripted endpoints, as TLS clients see them. */

import { X509Certificate } from 'node:crypto'
import { connect } from 'node:tls'
import { Agent } from 'undici'
import { expect, it, onTestFinished } from 'vitest'
import type { CertificateFault } from '../../src/testing/certificates.ts'
import { startEndpoint } from '../../src/testing/scripted-endpoint.ts'
import { errorOf, post } from './post.ts'

function tryTls(url: string, trusted: { ca?: string } = {}): Promise<string> {
  const { hostname: host, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host, servername: host, port: Number(port), ...trusted })
    socket.on('secureConnect', () => {
      resolve('connected')
      socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}

it.each<[CertificateFault, string, string]>([
  ['self_signed', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'connected'],
  ['expired', 'CERT_HAS_EXPIRED', 'CERT_HAS_EXPIRED'],
  ['wrong_name', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ['private_ca', 'SELF_SIGNED_CERT_IN_CHAIN', 'connected'],
])('to a TLS client, %s is %s, and with its ca %s', async (tls, without, trusted) => {
  const endpoint = await startEndpoint({ tls })
  onTestFinished(() => endpoint.close())
  expect(endpoint.url).toMatch(/^https:\/\/localhost:\d+\/webhooks$/)
  expect(await tryTls(endpoint.url)).toBe(without)
  expect(await tryTls(endpoint.url, endpoint)).toBe(trusted)
  expect(endpoint.connections).toBeGreaterThanOrEqual(2)
  expect([endpoint.bytesReceived, endpoint.requests]).toEqual([0, []])
})

it('private_ca is good for localhost and 127.0.0.1, and what is sent inside is counted', async () => {
  const endpoint = await startEndpoint({ tls: 'private_ca', script: [201, 'reset'] })
  onTestFinished(() => endpoint.close())
  expect(new X509Certificate(endpoint.ca).validTo).toContain('2049')
  const dispatcher = new Agent({ connect: { ca: endpoint.ca }, allowH2: false })
  onTestFinished(() => dispatcher.destroy())
  expect(await post(endpoint.url, 'hello', { dispatcher })).toMatchObject({ status: 201 })
  expect(endpoint.requests[0]).toMatchObject({ url: endpoint.url, path: '/webhooks' })
  expect(endpoint.bytesReceived).toBeGreaterThan('POST /webhooks'.length)
  expect(endpoint.bytesReceived).toBeLessThan(400)
  const numeric = endpoint.url.replace('localhost', '127.0.0.1')
  expect(await errorOf(post(numeric, 'hello', { dispatcher }))).toMatchObject({ code: 'ECONNRESET' })
})

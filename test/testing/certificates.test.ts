/** The certificates of scripted endpoints, as TLS clients and openssl see them. */

import { execFileSync, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { CERTIFICATE_FAULTS, type CertificateFault, createCertificate } from '../../src/testing/certificates.ts'
import { startEndpoint } from '../../src/testing/endpoint.ts'
import { needs } from '../support/needs.ts'
import { errorOf, post } from './post.ts'

/** Connects, sends one byte, and says how that went. */
function tryTls(url: string, ca?: string | string[]): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname,
      servername: hostname,
      port: Number(port),
      ...(ca !== undefined && { ca }),
    })
    socket.on('secureConnect', () => {
      resolve('connected')
      socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}

describe('to a TLS client', () => {
  it.each<[CertificateFault, string, string]>([
    ['self_signed', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'connected'],
    ['expired', 'CERT_HAS_EXPIRED', 'CERT_HAS_EXPIRED'],
    ['wrong_name', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['private_ca', 'SELF_SIGNED_CERT_IN_CHAIN', 'connected'],
  ])('%s is %s, and with its ca %s', async (tls, without, trusted) => {
    const endpoint = await startEndpoint({ tls })
    onTestFinished(() => endpoint.close())
    expect(endpoint.url).toMatch(/^https:\/\/localhost:\d+\/webhooks$/)
    expect(await tryTls(endpoint.url)).toBe(without)
    expect(await tryTls(endpoint.url, endpoint.ca)).toBe(trusted)
    expect(endpoint.connections).toBeGreaterThanOrEqual(2)
    expect([endpoint.bytesReceived, endpoint.requests]).toEqual([0, []])
  })

  it('private_ca is good for localhost and 127.0.0.1, and what is sent inside is counted', async () => {
    const endpoint = await startEndpoint({ tls: 'private_ca', script: [201, 'reset', { reset: 'headers' }] })
    onTestFinished(() => endpoint.close())
    const { Agent } = await import('undici')
    const dispatcher = new Agent({ connect: { ca: endpoint.ca }, allowH2: false })
    onTestFinished(() => dispatcher.destroy())
    expect(await post(endpoint.url, 'hello', { dispatcher })).toMatchObject({ status: 201 })
    expect(endpoint.requests[0]).toMatchObject({ url: endpoint.url, path: '/webhooks' })
    expect(endpoint.bytesReceived).toBeGreaterThan('POST /webhooks'.length)
    expect(endpoint.bytesReceived).toBeLessThan(400)
    const numeric = endpoint.url.replace('localhost', '127.0.0.1')
    expect(await errorOf(post(numeric, 'hello', { dispatcher }))).toMatchObject({ code: 'ECONNRESET' })
    expect(await errorOf(post(numeric, 'hello', { dispatcher }))).toMatchObject({ code: 'ECONNRESET' })
    expect(endpoint.requests).toHaveLength(2)
  })

  it('authorities do not get in the way of one another', async () => {
    const endpoints = [await startEndpoint({ tls: 'private_ca' }), await startEndpoint({ tls: 'private_ca' })]
    onTestFinished(async () => void (await Promise.all(endpoints.map((endpoint) => endpoint.close()))))
    const both = endpoints.map((endpoint) => ('ca' in endpoint ? String(endpoint.ca) : ''))
    for (const { url } of endpoints) expect(await tryTls(url, both)).toBe('connected')
    expect(await tryTls(endpoints[0]?.url ?? '', both[1])).toBe('SELF_SIGNED_CERT_IN_CHAIN')
  })
})

describe.each(CERTIFICATE_FAULTS)('%s', (fault) => {
  const made = createCertificate(fault)
  const [leaf, authority] = [new X509Certificate(made.server.cert), new X509Certificate(made.ca)]

  it('is signed by its authority, which is signed by itself', () => {
    expect(leaf.verify(authority.publicKey)).toBe(true)
    expect(leaf.checkIssued(authority)).toBe(true)
    expect(authority.verify(authority.publicKey)).toBe(true)
    expect([leaf.ca, authority.ca]).toEqual([false, fault !== 'self_signed'])
  })

  it('has a serial number and keys of its own', () => {
    const other = createCertificate(fault)
    expect(new X509Certificate(other.server.cert).serialNumber).not.toBe(leaf.serialNumber)
    expect(other.server.key).not.toBe(made.server.key)
  })
})

describe('to openssl', needs('openssl'), () => {
  const directory = mkdtempSync(join(tmpdir(), 'hookline-certificates-'))
  afterAll(() => rmSync(directory, { recursive: true }))

  function files(fault: CertificateFault): { cert: string; ca: string } {
    const { server, ca } = createCertificate(fault)
    const paths = { cert: join(directory, `${fault}.pem`), ca: join(directory, `${fault}-ca.pem`) }
    writeFileSync(paths.cert, server.cert)
    writeFileSync(paths.ca, ca)
    return paths
  }

  it.each<[CertificateFault, string]>([
    ['self_signed', 'OK'],
    ['expired', 'certificate has expired'],
    ['wrong_name', 'hostname mismatch'],
    ['private_ca', 'OK'],
  ])('%s: verify says %s', (fault, verdict) => {
    const { cert, ca } = files(fault)
    const { stdout, stderr } = spawnSync('openssl', ['verify', '-verify_hostname', 'localhost', '-CAfile', ca, cert])
    expect(`${stdout}${stderr}`).toContain(verdict)
  })

  it('reads as intended', () => {
    const { cert, ca } = files('private_ca')
    const text = (path: string) => execFileSync('openssl', ['x509', '-noout', '-text', '-in', path]).toString()
    for (const expected of ['Version: 3', 'prime256v1', 'ecdsa-with-SHA256', 'DNS:localhost, IP Address:127.0.0.1']) {
      expect(text(cert)).toContain(expected)
    }
    expect(text(cert)).toMatch(/Not After : Dec 31 23:59:59 2049 GMT/)
    expect(text(ca)).toMatch(/Basic Constraints: critical\s+CA:TRUE/)
    expect(text(ca)).toMatch(/Key Usage: critical\s+Certificate Sign\n/)
  })
})

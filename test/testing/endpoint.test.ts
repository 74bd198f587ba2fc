/** The scripted endpoint, called over real sockets; and its certificates, as TLS clients see them. */

import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Agent } from 'undici'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type CertificateFault, type Step, startEndpoint } from '../../src/testing.ts'
import { listen } from '../send/set-up.ts'
import { until } from '../support/until.ts'
import { errorOf, post } from './post.ts'

/** Sends an empty request, and collects the bytes that come back. */
function readBytes(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write('POST /webhooks HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  return { socket, text: () => text }
}

it('the script answers 500 for a function that returns no step, and close() says why', async () => {
  const endpoint = await startEndpoint({ script: [() => 'nonsense' as Step, 200] })
  for (const status of [500, 200]) expect(await post(endpoint.url)).toMatchObject({ status })
  await expect(endpoint.close()).rejects.toThrow('`script[0](request)`')
})

it('the step drip sends headers, and bytes without end', async () => {
  const { url } = await listen({ script: [{ dripMs: 5 }] })
  const { socket, text } = readBytes(url)
  await until(() => text().split('1\r\n.\r\n').length > 3)
  expect(text()).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
  socket.destroy()
  await once(socket, 'close')
})

it.each<['answer' | 'chunk', RegExp]>([
  ['answer', /content-length: 16\r\n(.+\r\n)*\r\nHalf of $/],
  ['chunk', /transfer-encoding: chunked\r\n(.+\r\n)*\r\n8\r\nHalf of \r\n$/i],
])('the step reset: %s sends the first half', async (reset, half) => {
  const { url } = await listen({ script: [{ reset }] })
  const { socket, text } = readBytes(url)
  const [error] = await once(socket, 'error').catch((error) => [error])
  expect(error).toMatchObject({ code: 'ECONNRESET' })
  expect(text()).toMatch(half)
})

it('close() ends what hangs and stops listening; a second time does no harm', async () => {
  const endpoint = await startEndpoint({ script: ['hang', 'drip', { delayMs: 60_000 }] })
  const outcomes = [1, 2, 3].map(() => errorOf(post(endpoint.url)))
  for (const count of [3, 2]) expect(await endpoint.received(count)).toHaveLength(count)
  await endpoint.close()
  const [hung, dripped, held] = await Promise.all(outcomes)
  expect([hung?.code, held?.code]).toEqual(['UND_ERR_SOCKET', 'UND_ERR_SOCKET'])
  expect(dripped).toBeInstanceOf(Error) // The headers of its answer were there, or not yet.
  expect(await errorOf(post(endpoint.url))).toMatchObject({ code: 'ECONNREFUSED' })
  await endpoint.close()
})

describe('options', () => {
  it.each<[object, string]>([
    [{ scripts: [] }, '`scripts`'],
    [{ path: 'webhooks' }, '`path`'],
    [{ port: 65_536 }, '`port`'],
    [{ script: [] }, '`script`'],
    [{ script: [200, 'hangs'] }, '`script[1]`'],
    [{ script: [100] }, '`script[0].status`'],
    [{ script: [{ headers: { 'x a': '1' } }] }, '`script[0].headers`'],
    [{ script: [{ body: {} }] }, '`script[0].body`'],
    [{ script: [{ delayMs: -1 }] }, '`script[0].delayMs`'],
    [{ script: [{ dripMs: 1, body: 'x' }] }, '`script[0].dripMs`'],
    [{ script: [{ reset: 'soon' }] }, '`script[0].reset`'],
    [{ script: [{ reset: 'body', status: 200 }] }, '`script[0].status`'],
  ])('%j is a TypeError', async (options, message) => {
    const error = await errorOf(startEndpoint(options))
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toContain(message)
  })

  it('the arguments of received are checked too', async () => {
    const endpoint = await listen({ path: '/' })
    expect(new URL(endpoint.url).pathname).toBe('/')
    await expect(endpoint.received(0)).rejects.toThrow('`count`')
    await expect(endpoint.received(1, { timeoutMs: 0.5 })).rejects.toThrow(TypeError)
    await expect(endpoint.received(1, { timeout: 5 } as never)).rejects.toThrow('`timeout`')
  })
})

function tryTls(url: string, trusted: { ca?: string } = {}): Promise<string> {
  const { hostname: host, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connectTls({ host, servername: host, port: Number(port), ...trusted })
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

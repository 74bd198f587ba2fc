/** Faults of a connection, on real sockets. */

import { createSecureServer } from 'node:http2'
import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { RESPONSE_TIME_MS } from '../../src/protocol/limits.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import { explainError } from '../../src/send/url-attempt.ts'
import { type CertificateFault, createCertificate } from '../../src/testing/certificates.ts'
import { manualClock, startEndpoint } from '../../src/testing.ts'
import { until } from '../support/until.ts'
import { listen, openSender, portOf, serveBytes, serveKept } from './set-up.ts'

async function post(url: string, options: Omit<SenderOptions, 'webhooks'> = {}) {
  const { attempts } = await openSender({ webhooks: [{ url }], ...options }).track({ userId: 'u', event: 'E' })
  return attempts[0]
}

describe('the timeout', () => {
  it('is 5 seconds, covers waiting for the headers, and closes the connection: the next attempt opens another', async () => {
    const clock = manualClock()
    const endpoint = await listen({ script: ['hang', 200] })
    const sender = openSender({ webhooks: [{ url: endpoint.url }], clock })
    const ended = vi.fn()
    const first = sender.delete({ userId: 'u' })
    void first.then(ended)
    await endpoint.received(1)

    await clock.advance(RESPONSE_TIME_MS - 1)
    expect(ended).not.toHaveBeenCalled()

    await clock.advance(1)
    const attempt = { error: 'timeout', durationMs: 5_000, body: '' }
    expect(await first).toMatchObject({ ok: false, attempts: [attempt] })
    expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: true })
    expect(endpoint.connections).toBe(2)
  })

  it('covers connecting: a host with which no TLS handshake begins', async () => {
    const { url } = await serveBytes(() => {})
    expect(await post(url.replace('http:', 'https:'), { timeoutMs: 60 })).toMatchObject({ error: 'timeout' })
  })

  it('covers a body that drips, whatever its status', async () => {
    const endpoint = await listen({ script: ['drip'] })
    const attempt = await post(endpoint.url, { timeoutMs: 300 })
    expect(attempt).toMatchObject({ error: 'timeout' })
    expect(attempt).not.toHaveProperty('status')
  })
})

describe('a certificate', () => {
  it.each<[CertificateFault, boolean, object]>([
    ['self_signed', false, { error: 'self_signed' }], // With its authority: test/kit/connector.
    ['expired', true, { error: 'tls' }],
    ['wrong_name', true, { error: 'tls' }],
    ['private_ca', false, { error: 'tls' }],
  ])('that is %s is an error, and nothing is sent: with its authority in `ca`: %s', async (tls, hasCa, expected) => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0') // It changes nothing.
    onTestFinished(() => void vi.unstubAllEnvs())
    await using endpoint = await startEndpoint({ tls })
    const attempt = await post(endpoint.url, hasCa ? { ca: endpoint.ca } : {})
    expect(attempt).toMatchObject({ ok: false, ...expected })
    expect(endpoint.bytesReceived).toBe(0)
  })

  it('of a private authority that is given is none, and HTTP/1.1 is spoken where HTTP/2 is offered', async () => {
    const { ca, server: credentials } = createCertificate('private_ca')
    const versions: string[] = []
    const server = createSecureServer({ ...credentials, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion)
      response.end()
    })

    const attempt = await post(`https://localhost:${await portOf(server)}/`, { ca })

    expect(attempt).toMatchObject({ ok: true })
    expect(versions).toEqual(['1.1'])
  })
})

test('close() closes every connection', async () => {
  const { url, open } = await serveKept()
  const sender = createSender({ webhooks: [{ url }] })
  const destination = createDestination({ webhooks: [{ url }] })

  await Promise.all([1, 2, 3].map(() => sender.delete({ userId: 'u' })))
  expect(open.size).toBe(3)
  await sender.close()
  await until(() => open.size === 0)

  await destination.delete({ userId: 'u' })
  await destination.close()
  await until(() => open.size === 0)
})

describe('a fault', () => {
  const serveText = async (text: string) => (await serveBytes((socket) => socket.end(text))).url
  const cutOff = async (reset: 'answer' | 'chunk') => (await listen({ script: [{ reset }] })).url

  test.each<[string, () => string | Promise<string>, string]>([
    ['an answer that is cut off before its end', () => cutOff('answer'), 'reset'],
    ['an answer that is cut off in a chunk', () => cutOff('chunk'), 'reset'],
    ['a connection that is closed without an answer', () => serveText(''), 'reset'],
    ['an answer that is not HTTP', () => serveText('220 mail.example ESMTP\r\n'), 'http'],
    ['a name that does not resolve', () => 'http://host.invalid/', 'dns'],
  ])('%s is an error, without the secret or the query of the URL', async (_fault, start, error) => {
    const attempt = await post(`${await start()}?token=t0ken`, { sharedSecret: 's3cret' })
    expect(attempt).toMatchObject({ ok: false, error })
    expect(JSON.stringify(attempt)).not.toMatch(/t0ken|s3cret/)
  })

  test('that quotes the path is explained without the query of the URL', () => {
    const target = { path: '/hooks?token=t0ken', shown: 'https://shop.example/hooks?…' }
    const { reason } = explainError(new Error('no route for /hooks?token=t0ken here'), target)
    expect(reason).toContain('no route for https://shop.example/hooks?… here')
    expect(reason).not.toContain('t0ken')
  })
})

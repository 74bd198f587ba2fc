/** Faults of a connection, on real sockets. */

import { createSecureServer } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, onTestFinished, test, vi } from 'vitest'
import { RESPONSE_TIME_MS } from '../../src/protocol/limits.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import type { SenderOptions } from '../../src/send/sender-options.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { type EndpointOptions, manualClock, startEndpoint } from '../../src/testing.ts'
import { until } from '../support/until.ts'

async function post(url: string, options: Omit<SenderOptions, 'webhooks'> = {}) {
  const sender = createSender({ webhooks: [{ url }], ...options })
  onTestFinished(() => sender.close())
  const { attempts } = await sender.track({ userId: 'u', event: 'E' })
  return attempts[0]
}

async function listen(options?: EndpointOptions) {
  const endpoint = await startEndpoint(options)
  onTestFinished(() => endpoint.close())
  return endpoint
}

async function serve(onConnection: (socket: Socket) => void): Promise<{ url: string }> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    onConnection(socket)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

describe('the timeout', () => {
  const short = { timeoutMs: 60 }

  it('is 5 seconds, and covers waiting for the headers', async () => {
    expect(RESPONSE_TIME_MS).toBe(5_000)
    const clock = manualClock()
    const endpoint = await listen({ script: ['hang'] })
    const sender = createSender({ webhooks: [{ url: endpoint.url }], clock })
    onTestFinished(() => sender.close())
    let round: unknown
    void sender.delete({ userId: 'u' }).then((value) => {
      round = value
    })
    await endpoint.received(1)

    await clock.advance(4_999)
    expect(round).toBeUndefined()
    await clock.advance(1)
    expect(round).toMatchObject({
      ok: false,
      attempts: [
        {
          error: 'timeout',
          durationMs: 5_000,
          reason: expect.stringContaining('Got a timeout before a response. '),
          body: '',
        },
      ],
    })
  })

  it('covers connecting: a host that does not answer', async () => {
    const { url } = await serve(() => {})
    // The socket is open, but the TLS handshake never begins.
    expect(await post(url.replace('http:', 'https:'), short)).toMatchObject({
      error: 'timeout',
      reason: expect.stringContaining('Got a timeout before a connection. '),
    })
  })

  it('covers a body that drips, whatever its status', async () => {
    const endpoint = await listen({ script: ['drip'] })
    const attempt = await post(endpoint.url, { timeoutMs: 300 })

    expect(attempt).toMatchObject({
      error: 'timeout',
      reason: expect.stringContaining('Got a timeout before the end of the response. '),
    })
    expect(attempt).not.toHaveProperty('status')
  })

  it('closes the connection of an attempt that timed out, and the next attempt opens another', async () => {
    const clock = manualClock()
    const endpoint = await listen({ script: ['hang', 200] })
    const sender = createSender({ webhooks: [{ url: endpoint.url }], clock })
    onTestFinished(() => sender.close())

    const first = sender.delete({ userId: 'u' })
    await endpoint.received(1)
    await clock.advance(5_000)
    expect(await first).toMatchObject({ ok: false })
    expect(await sender.delete({ userId: 'u' })).toMatchObject({ ok: true })
    expect(endpoint.connections).toBe(2)
  })
})

describe('a certificate', () => {
  it('that is self-signed is an error, also when NODE_TLS_REJECT_UNAUTHORIZED is 0', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    const endpoint = await listen({ tls: 'self_signed' })

    expect(await post(endpoint.url)).toMatchObject({ error: 'self_signed' })
    expect(endpoint.bytesReceived).toBe(0)
  })

  it('that is self-signed is an error, also when `ca` has it', async () => {
    const endpoint = await startEndpoint({ tls: 'self_signed' })
    onTestFinished(() => endpoint.close())

    expect(await post(endpoint.url, { ca: endpoint.ca })).toMatchObject({ ok: false, error: 'self_signed' })
    expect(endpoint.bytesReceived).toBe(0)
  })

  it.each(['expired', 'wrong_name'] as const)('that is %s is an error, and nothing is sent', async (tls) => {
    const endpoint = await startEndpoint({ tls })
    onTestFinished(() => endpoint.close())

    expect(await post(endpoint.url, { ca: endpoint.ca })).toMatchObject({ ok: false, error: 'tls' })
    expect(endpoint.bytesReceived).toBe(0)
  })

  it('of a private authority is an error, unless the authority is given', async () => {
    const endpoint = await startEndpoint({ tls: 'private_ca' })
    onTestFinished(() => endpoint.close())

    expect(await post(endpoint.url)).toMatchObject({ ok: false, error: 'tls' })
    expect(endpoint.bytesReceived).toBe(0)
    expect(await post(endpoint.url, { ca: endpoint.ca })).toMatchObject({ ok: true, status: 200 })
  })
})

describe('an attempt', () => {
  it('speaks HTTP/1.1, also with an endpoint that offers HTTP/2', async () => {
    const { ca, server: credentials } = createCertificate('private_ca')
    const versions: string[] = []
    const server = createSecureServer({ ...credentials, allowHTTP1: true }, (request, response) => {
      versions.push(request.httpVersion)
      response.end()
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())

    expect(await post(`https://localhost:${(server.address() as AddressInfo).port}/`, { ca })).toMatchObject({
      ok: true,
    })
    expect(versions).toEqual(['1.1'])
  })

  it('reads at most 64 KiB of an endless response', async () => {
    let written = 0
    let isOver = false
    const { url } = await serve((socket) => {
      const chunk = Buffer.alloc(16 * 1024, 'x')
      const write = (): void => {
        written += chunk.length
        if (!socket.destroyed) socket.write(chunk, write)
      }
      socket.once('data', () => socket.write('HTTP/1.1 202 OK\r\n\r\n', write))
      socket.once('close', () => {
        isOver = true
      })
    })
    const sender = createSender({ webhooks: [{ url }] })
    const { attempts } = await sender.delete({ userId: 'u' })
    expect(attempts).toMatchObject([{ ok: true, status: 202, body: 'x'.repeat(256) }])
    await until(() => isOver)
    expect(written).toBeLessThan(8 * 1024 * 1024) // What the buffers of two sockets take, and not more.
    await sender.close()
  })

  it('quotes 256 bytes, in however many chunks they come', async () => {
    const { url } = await serve((socket) =>
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n${'a'.repeat(200)}`)
        setTimeout(() => socket.write('b'.repeat(200)), 10)
      }),
    )
    expect((await post(url))?.body).toBe('a'.repeat(200) + 'b'.repeat(56))
  })
})

test('close() closes every connection', async () => {
  let open = 0
  const { url } = await serve((socket) => {
    open += 1
    socket.on('close', () => {
      open -= 1
    })
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))
  })
  const sender = createSender({ webhooks: [{ url }] })
  await Promise.all([1, 2, 3].map(() => sender.delete({ userId: 'u' })))
  expect(open).toBe(3)
  await sender.close()
  await vi.waitFor(() => expect(open).toBe(0), { timeout: 500 })

  const destination = createDestination({ webhooks: [{ url }] })
  await destination.delete({ userId: 'u' })
  await destination.close()
  await vi.waitFor(() => expect(open).toBe(0), { timeout: 500 })
})

test('no timer of a finished attempt keeps the process alive', async () => {
  const timers: { unref: () => void }[] = []
  const unref = vi.fn()
  const clock = { ...manualClock(), setTimeout: () => timers[timers.push({ unref }) - 1] }
  const endpoint = await listen()
  expect(await post(endpoint.url, { clock })).toMatchObject({ ok: true })

  expect(timers).toHaveLength(1)
  expect(unref).toHaveBeenCalledOnce()
})

describe('a fault', () => {
  test.each(['answer', 'chunk'] as const)('an answer that is cut off in the %s', async (reset) => {
    const endpoint = await listen({ script: [{ reset }] })
    expect(await post(endpoint.url)).toMatchObject({ error: 'reset' })
  })

  test('the name does not resolve', async () => {
    expect(await post('http://host.invalid/')).toMatchObject({ error: 'dns' })
  })

  test('a connection that is closed without an answer', async () => {
    const { url } = await serve((socket) => socket.once('data', () => socket.end()))
    expect(await post(url)).toMatchObject({ error: 'reset' })
  })

  test('an answer that is not HTTP', async () => {
    const { url } = await serve((socket) => socket.once('data', () => socket.end('220 mail.example ESMTP\r\n')))
    expect(await post(url)).toMatchObject({ error: 'http' })
  })

  test('no fault puts the secret or the query of a URL into the attempt', async () => {
    const endpoint = await listen({ script: ['reset', 500, 'garbage'] })
    for (let i = 0; i < 3; i++) {
      const attempt = await post(`${endpoint.url}?token=t0ken`, { sharedSecret: 's3cret' })
      expect(JSON.stringify(attempt)).not.toMatch(/t0ken|s3cret/)
    }
    expect(JSON.stringify(await post('http://host.invalid/?token=t0ken'))).not.toContain('t0ken')
  })
})

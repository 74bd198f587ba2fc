/** Every framework that speaks HTTP/2, on real sockets: what is left of a request once it is answered. */

import { once } from 'node:events'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, it, type TestContext } from 'vitest'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import { createReceiver, type Endpoint } from '../../src/index.ts'
import { DISCARD_MS } from '../../src/protocol/limits.ts'
import { manualClock } from '../../src/testing.ts'
import { until } from '../support/until.ts'

const frameworks: Readonly<Record<string, (endpoint: Endpoint) => Promise<http2.Http2Server>>> = {
  'node:http2': async (endpoint) => http2.createServer(serveNode(endpoint)),
  'Koa 3': async (endpoint) => http2.createServer(new Koa().use(serveKoa(endpoint)).callback()),
  async 'Fastify 5'(endpoint) {
    const app = fastify({ http2: true })
    app.register(serveFastify(endpoint))
    await app.ready()
    return app.server
  },
}

describe.concurrent.each(Object.entries(frameworks))('%s', (_name, create) => {
  async function listen({ onTestFinished }: TestContext, settings: http2.Settings = {}, endpoint?: Endpoint) {
    const clock = manualClock()
    const server = await create(endpoint ?? createReceiver({ allowUnsigned: true, clock, onError: () => {} }))
    const streams: http2.ServerHttp2Stream[] = []
    server.on('session', (session) => session.on('stream', (stream) => void streams.push(stream)))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const session = http2.connect(`http://127.0.0.1:${port}`, { settings })
    onTestFinished(() => {
      session.destroy()
      server.close()
    })
    const request = (type = 'application/json', endStream = false) =>
      session.request({ ':method': 'POST', 'content-type': type }, { endStream })
    return { clock, streams, request }
  }
  const statusOf = async (stream: http2.ClientHttp2Stream) => (await once(stream, 'response'))[0][':status']

  it('forgets what arrives after the answer', async (test) => {
    const { streams, request } = await listen(test)
    const stream = request().resume()
    const status = statusOf(stream)
    const timer = setInterval(() => stream.closed || stream.write(Buffer.alloc(100_000)), 5)
    test.onTestFinished(() => clearInterval(timer))
    test.expect(await status).toBe(413)
    await until(() => stream.closed && streams[0]?.destroyed === true)
    test.expect(stream.rstCode).toBe(http2.constants.NGHTTP2_NO_ERROR)
  })

  it.for([
    ['read in part', 'application/json', 503],
    ['not read', 'text/plain', 415],
  ] as const)('does not wait for a client that takes no answer: its body was %s', async ([, type, expected], test) => {
    const { clock, streams, request } = await listen(test, { initialWindowSize: 0 })
    const stream = request(type).resume()
    const status = statusOf(stream)
    stream.write(Buffer.alloc(50_000))
    await until(() => streams.length === 1)
    await clock.advance(4_500)
    test.expect(await status).toBe(expected)
    await until(() => streams[0]?.destroyed === true)
  })

  it.for([
    ['that has no body', true, 500_000],
    ['whose body has not ended', false, 60_000], // It fits into the window of a stream, and need not wait for the client.
  ] as const)('gives the client the time for the answer to a request %s', async ([, endStream, length], test) => {
    const body = 'x'.repeat(length)
    const { request } = await listen(test, {}, { handle: async () => ({ status: 200, headers: {}, body }) })
    const stream = request(undefined, endStream)
    if (endStream) await delay(2 * DISCARD_MS)
    let size = 0
    for await (const chunk of stream) size += chunk.length
    test.expect(size).toBe(length)
  })
})

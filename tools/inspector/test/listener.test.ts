/** Where the page is served: a port of its own, and each framework on Node, as the guide mounts it. */

import { once } from 'node:events'
import http, { type IncomingMessage, type RequestListener } from 'node:http'
import { text } from 'node:stream/consumers'
import express5 from 'express'
import express4 from 'express4'
import createFastify from 'fastify'
import { createReceiver } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { manualClock } from 'hookline/testing'
import Koa from 'koa'
import { describe, expect, it, vi } from 'vitest'
import { createHandler, type PageRequest } from '../src/endpoint/listener.ts'
import { createInspector, type Inspector, type InspectorOptions } from '../src/index.ts'
import { closeLater, headerOf, OWN_HEADERS, start } from './support.ts'

function create(options: Pick<InspectorOptions, 'authorize'> = {}): Inspector {
  const receiver = createReceiver({ secret: 'the secret', inbox: { queue: memoryQueue() } })
  const inspector = createInspector({ receiver, ...options })
  closeLater(() => Promise.all([inspector.close(), receiver.close()]))
  return inspector
}

const PATH = '/tools/hookline'

function koa(inspector: Inspector): RequestListener {
  const app = new Koa()
  app.use((context, next) => {
    const { path, url, originalUrl, req, res } = context
    if (!`${path}/`.startsWith(`${PATH}/`)) return next()
    context.respond = false
    return inspector.handler(Object.assign(req, { originalUrl, url: url.slice(PATH.length) }), res)
  })
  return app.callback()
}

async function fastify(inspector: Inspector): Promise<RequestListener> {
  const app = createFastify()
  const onRequest = ({ raw }: { raw: IncomingMessage }, reply: { hijack(): unknown; raw: http.ServerResponse }) => {
    reply.hijack()
    const { url = '' } = raw
    inspector.handler(Object.assign(raw, { originalUrl: url, url: url.slice(PATH.length) }), reply.raw)
  }
  app.all(`${PATH}*`, { onRequest }, () => {})
  await app.ready()
  return (request, response) => void app.server.emit('request', request, response)
}

const hosts: Record<string, (inspector: Inspector) => RequestListener | Promise<RequestListener>> = {
  'Express 4, behind body parsers': ({ handler }) =>
    express4()
      .use(express4.json(), express4.text({ type: '*/*' }))
      .use(PATH, handler),
  'Express 5, in a router below a router': ({ handler }) =>
    express5().use('/tools', express5.Router().use('/hookline', handler)),
  'Koa 3': koa,
  'Fastify 5': fastify,
}

async function expectPage(url: string, inspector: Inspector): Promise<void> {
  const headers = headerOf(inspector)
  const get = (path: string, given: Record<string, string> = headers) => fetch(url + path, { headers: given })
  const page = await get('/')
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(await page.text()).toContain('src="page.js"')
  expect((await get('/page.css')).status).toBe(200)

  const parts = [{ name: 'receiver', kind: 'receiver', hasQueue: true }]
  expect(await (await get('/api/setup')).json()).toMatchObject({ access: 'write', parts })
  expect((await get('/api/setup', {})).status).toBe(403)
  const head = await fetch(`${url}/page.js`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])

  const stream = await get('/api/stream')
  const first = await stream.body?.getReader().read()
  expect(Buffer.from(first?.value ?? []).toString()).toContain('event: rows')

  const own = { ...(OWN_HEADERS as Record<string, string>), origin: new URL(url).origin, ...headers }
  const drop = (body: object) => fetch(`${url}/api/drop`, { method: 'POST', headers: own, body: JSON.stringify(body) })
  expect((await drop({ part: 'other' })).status).toBe(404)
  expect(await (await drop({ part: 'receiver', dryRun: true })).json()).toMatchObject({ count: 0 })
  expect((await get('/other')).status).toBe(404)
}

it.each(Object.entries(hosts))(
  'the page is served by %s, which sends who asks without a slash below its path',
  async (_name, mount) => {
    const inspector = create()
    const url = `${await start(await mount(inspector))}${PATH}`

    const moved = await fetch(`${url}?a=b`, { redirect: 'manual' })

    expect([moved.status, moved.headers.get('location')]).toEqual([308, './hookline/?a=b'])
    await expectPage(url, inspector)
    expect(await fetch(`${new URL(url).origin}/other`)).toMatchObject({ status: 404 })
  },
)

it('an inspector serves its page itself, on a port of this machine, until it is closed', async () => {
  const inspector = create()
  const url = new URL(await inspector.listen({ port: 0 }))
  expect([url.protocol, url.hostname, url.pathname]).toEqual(['http:', '127.0.0.1', '/'])
  expect(url.href).toBe(inspector.url(url.origin))
  await expectPage(url.origin, inspector)
  const open = create({ authorize: () => 'write' })
  const other = await open.listen({ port: 0, host: '::1' })
  expect(other).toMatch(/^http:\/\/\[::1\]:\d+\/$/)
  expect((await fetch(`${other}api/setup`)).status).toBe(200)

  await expect(open.listen({ port: Number(url.port) })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  const stream = await fetch(`${url.origin}/api/stream`, { headers: headerOf(inspector) })
  await inspector.close()
  await stream.text().catch(() => {})
  await expect(fetch(url.origin)).rejects.toThrow()
  await open.close()
})

it.each([
  [undefined, /options/],
  [{}, /`port`/],
  [{ port: 65_536 }, /`port`/],
  [{ port: 0, host: '' }, /`host`/],
  [{ port: 0, hots: 'x' }, /`hots`/],
])('an inspector does not listen with %j', async (options, name) => {
  const error = await create()
    .listen(options as never)
    .catch((error: unknown) => error)
  expect(error).toBeInstanceOf(TypeError)
  expect(String(error)).toMatch(name)
})

it('passes on what is not the page', async () => {
  const { handler } = create()
  const origin = await start((request, response) => handler(request, response, () => response.end('the next')))
  expect(await (await fetch(`${origin}/other`)).text()).toBe('the next')
  expect((await fetch(`${origin}/page.js`)).headers.get('content-type')).toContain('javascript')
})

describe('a streamed answer', () => {
  const CHUNK = 'x'.repeat(1_000_000)

  async function serve(body: (request: PageRequest) => AsyncGenerator<string>) {
    const clock = manualClock()
    const handle = async (request: PageRequest) => ({ status: 200, headers: {}, body: body(request) })
    const origin = await start(createHandler(handle, clock))
    const [response] = (await once(http.get(origin), 'response')) as [IncomingMessage]
    closeLater(() => response.destroy())
    return { clock, response }
  }

  it('that fails closes the connection, so that nobody mistakes it for a complete one', async () => {
    const { response } = await serve(async function* () {
      yield 'one'
      throw new Error('the disk is on fire')
    })
    await expect(text(response)).rejects.toThrow()
  })

  it('whose client leaves ends at once, whatever it waits for', async () => {
    const ended = vi.fn()
    const { response } = await serve(async function* ({ signal }) {
      yield 'one'
      await once(signal, 'abort').catch(() => {})
      ended()
    })
    await once(response, 'data')
    expect(ended).not.toHaveBeenCalled()

    response.on('error', () => {}).destroy()

    await vi.waitFor(() => expect(ended).toHaveBeenCalled())
  })

  it('is cut off when its client reads nothing for 30 seconds, and not while it has nothing to say', async () => {
    const silence = Promise.withResolvers<void>()
    let [count, isEnded] = [0, false]
    const { clock, response: reader } = await serve(async function* () {
      try {
        await silence.promise
        for (; ; count += 1) yield CHUNK
      } finally {
        isEnded = true
      }
    })
    /** Waits until the sockets hold all that they can. */
    const stalled = async (): Promise<void> => {
      for (let [last, quiet] = [-1, 0]; quiet < 300; quiet += 1) {
        await new Promise((resolve) => setImmediate(resolve))
        if (count !== last) [last, quiet] = [count, 0]
      }
    }
    reader.on('error', () => {})
    await clock.advance(120_000)
    expect(isEnded).toBe(false)
    silence.resolve()
    await stalled()
    await clock.advance(29_999)
    const before = count
    reader.resume()
    await vi.waitFor(() => expect(count).toBeGreaterThan(before + 1))
    reader.pause()
    await stalled()
    await clock.advance(29_999)
    expect(isEnded).toBe(false)
    await clock.advance(1)
    await vi.waitFor(() => expect(isEnded).toBe(true))
    await expect(text(reader)).rejects.toThrow()
  })
})

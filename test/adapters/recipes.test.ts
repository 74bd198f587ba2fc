/** What is special about one framework: its body parsers, routers, hooks and errors. */

import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import koaBodyparser from '@koa/bodyparser'
import express5 from 'express'
import express4 from 'express4'
import fastify5, { type FastifyInstance } from 'fastify'
import fastify4 from 'fastify4'
import Koa from 'koa'
import Koa2 from 'koa2'
import request from 'supertest'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveFetch } from '../../adapters/fetch.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveLambda } from '../../adapters/lambda.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import { NodeRequest } from '../../adapters/shared/node-request.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { secret, setUp } from '../support/receive.ts'
import { until } from '../support/until.ts'
import { clientOfHttp1 } from '../support/wire.ts'

/** A body that is serialised again is warned about. */
beforeEach(() => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
})

const spaced = JSON.stringify(fixtures.track, undefined, 2)

function post(app: Parameters<typeof request>[0], path = '/webhooks', text = spaced) {
  const { headers, body } = signedRequest(text, secret)
  return request(app).post(path).set(headers).send(body)
}

describe.each([
  { name: 'Express 4', express: express4 as unknown as typeof express5 },
  { name: 'Express 5', express: express5 },
])('$name', ({ express }) => {
  it('never passes an error on, and passes another path on', async () => {
    const { receiver } = setUp()
    const onError = vi.fn()
    const app = express()
    app.use(serveExpress(receiver, { path: '/webhooks' }))
    app.get('/other', (_incoming, response) => void response.send('other'))
    app.use((error: unknown, _incoming: unknown, _response: unknown, next: (error: unknown) => void) => {
      onError(error)
      next(error)
    })
    expect((await request(app).post('/webhooks').send('{')).status).toBe(415)
    expect((await request(app).get('/other')).text).toBe('other')
    expect(onError).not.toHaveBeenCalled()
  })

  it('leaves an answer alone that the host gave first', async () => {
    const { receiver } = setUp()
    const app = express()
    app.post(
      '/webhooks',
      (_incoming, response, next) => {
        response.status(504).send('host timeout')
        next()
      },
      serveExpress(receiver),
    )
    expect((await post(app)).text).toBe('host timeout')
  })
})

describe.each([
  { name: 'Koa 2', Framework: Koa2 as unknown as typeof Koa },
  { name: 'Koa 3', Framework: Koa },
])('$name', ({ Framework }) => {
  it('takes the rawBody that @koa/bodyparser keeps', async () => {
    const { receiver } = setUp()
    const sources: string[] = []
    receiver.on('track', (_message, delivery) => sources.push(delivery.bodySource))
    const app = new Framework().use(koaBodyparser()).use(serveKoa(receiver, { path: '/webhooks' }))
    expect((await post(app.callback())).body).toEqual({ ok: true })
    expect(sources).toEqual(['rawBody-text'])
  })

  it('shows its answer to middleware around it', async () => {
    const { receiver } = setUp()
    const seen: unknown[] = []
    const app = new Framework()
    app.use(async (context, next) => {
      await next()
      seen.push(context.status, context.body)
    })
    app.use(serveKoa(receiver))
    await post(app.callback(), '/anywhere')
    expect(seen).toEqual([200, '{"ok":true}'])
  })
})

describe.each([
  { name: 'Fastify 4', fastify: fastify4 as unknown as typeof fastify5 },
  { name: 'Fastify 5', fastify: fastify5 },
])('$name', ({ fastify }) => {
  function app(): FastifyInstance {
    const instance = fastify()
    onTestFinished(() => instance.close())
    return instance
  }
  const injected = (url: string) => {
    const { headers, body, method } = signedRequest(spaced, secret)
    return { url, headers, payload: body, method }
  }

  it('leaves the parsers of others alone, those before it and those after', async () => {
    const { receiver } = setUp()
    const instance = app()
    instance.addContentTypeParser('application/xml', { parseAs: 'string' }, (_request, text, done) =>
      done(null, { xml: text }),
    )
    instance.register(serveFastify(receiver), { path: '/webhooks' })
    instance.post('/echo', async (incoming) => incoming.body)
    const echo = (type: string, payload: string) =>
      instance.inject({ method: 'POST', url: '/echo', headers: { 'content-type': type }, payload })

    expect((await echo('application/xml', '<a/>')).json()).toEqual({ xml: '<a/>' })
    expect((await echo('application/json', '{"a":1}')).json()).toEqual({ a: 1 })
    expect((await echo('text/csv', 'a')).statusCode).toBe(415)
  })

  it('answers body_consumed when a hook read the body and kept nothing', async () => {
    const { receiver } = setUp()
    const instance = app()
    instance.addHook('preParsing', async (_incoming, _reply, payload) => {
      for await (const _ of payload);
      return payload
    })
    instance.register(serveFastify(receiver), { path: '/webhooks' })
    expect((await instance.inject(injected('/webhooks'))).json().code).toBe('body_consumed')
  })

  it('passes an error of a hook on, and a path that is not the endpoint’s', async () => {
    const instance = app()
    instance.addHook('preHandler', async (incoming) => {
      if (incoming.headers['x-fail']) throw new Error('from a hook')
    })
    instance.register(serveFastify({ handle: () => undefined }), { path: '/webhooks' })
    expect((await instance.inject({ url: '/webhooks', headers: { 'x-fail': '1' } })).json().message).toBe('from a hook')
    expect((await instance.inject(injected('/webhooks'))).statusCode).toBe(404)
  })

  it('leaves an answer alone that a hook gave first', async () => {
    const { receiver, clock } = setUp()
    const logs: string[] = []
    const instance = fastify({ logger: { level: 'warn', stream: { write: (line: string) => void logs.push(line) } } })
    onTestFinished(() => instance.close())
    receiver.on('track', () => new Promise(() => {}))
    instance.addHook('preHandler', (_incoming, reply, done) => {
      setImmediate(() => reply.code(504).send('host timeout'))
      done()
    })
    instance.register(serveFastify(receiver), { path: '/webhooks' })
    expect((await instance.inject(injected('/webhooks'))).statusCode).toBe(504)
    await clock.advance(4500)
    expect(logs).toEqual([])
  })

  it('fails at boot for a path without a slash', async () => {
    const instance = app()
    instance.register(serveFastify(setUp().receiver), { path: 'webhooks' })
    await expect(instance.ready()).rejects.toThrow(TypeError)
  })
})

it('node:http: reads a body that something earlier listens to', async () => {
  const { receiver } = setUp()
  const listener = serveNode(receiver)
  const seen: Buffer[] = []
  const server = http.createServer((incoming, response) => {
    incoming.on('data', (chunk: Buffer) => void seen.push(chunk))
    listener(incoming, response)
  })
  expect((await post(server)).status).toBe(200)
  expect(Buffer.concat(seen).toString()).toBe(spaced)
})

it('node:http: reads no more of a body when it has answered, of a stream that stays open, too', async () => {
  const body = new PassThrough()
  const node = new NodeRequest({ headers: {} } as http.IncomingMessage, {} as http.ServerResponse, '/', {}, body)
  const aborted = vi.fn()
  const handle = async () => {
    Promise.resolve(node.readBody(1_000)).catch(aborted)
    return { status: 503, headers: {}, body: '' }
  }

  await new Promise((resolve, fail) => node.answerWith(handle, resolve, fail))

  await until(() => aborted.mock.calls.length === 1)
  expect(aborted).toHaveBeenCalledWith(expect.objectContaining({ code: 'body_aborted' }))
  expect([body.listenerCount('data'), body.destroyed]).toEqual([0, false])
})

describe('fetch', () => {
  const { headers, body, method } = signedRequest(spaced, secret)
  const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code
  const webRequest = () => new Request('http://localhost/webhooks?x=1', { method, headers, body })

  it.each([
    ['was read before', (incoming: Request) => incoming.text()],
    ['has another reader', (incoming: Request) => incoming.body?.getReader()],
  ])('answers body_consumed when the body %s, and 200 where a clone was read', async (_how, read) => {
    const { receiver } = setUp()
    const incoming = webRequest()
    await read(incoming)
    const response = await serveFetch(receiver)(incoming)
    expect([response.status, await codeOf(response)]).toEqual([500, 'body_consumed'])
    const unread = webRequest()
    await read(unread.clone())
    expect((await serveFetch(receiver)(unread)).status).toBe(200)
  })

  it('cancels a body over the limit', async () => {
    const { receiver } = setUp({ limit: 10 })
    const cancel = vi.fn()
    const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(8)), cancel })
    const incoming = new Request('http://localhost/', { method, headers, body: endless, duplex: 'half' } as RequestInit)
    expect((await serveFetch(receiver)(incoming)).status).toBe(413)
    await until(() => cancel.mock.calls.length === 1)
  })

  it('refuses a body over the limit that Node reads', async () => {
    const { receiver } = setUp({ limit: 10 })
    const handler = serveFetch(receiver)
    const server = http.createServer(async (incoming, outgoing) => {
      const body = Readable.toWeb(incoming)
      const length = { 'content-length': incoming.headers['content-length'] ?? '' }
      const init = { method, headers: { ...headers, ...length }, body, duplex: 'half' } as RequestInit
      const { status } = await handler(new Request('http://localhost/', init))
      outgoing.writeHead(status, { connection: 'close' }).end()
    })
    onTestFinished(() => void server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { send } = clientOfHttp1((server.address() as AddressInfo).port)
    for (let sent = 0; sent < 3; sent++) {
      const reply = await send({ headers: {}, chunks: [new Uint8Array(60_000)] })
      expect(reply?.status).toBe(413)
    }
  })

  it('answers body_aborted when the body is shorter than its content-length', async () => {
    const { receiver } = setUp()
    const short = new Request('http://localhost/', { method, headers: { ...headers, 'content-length': '999' }, body })
    const response = await serveFetch(receiver)(short)
    expect([response.status, await codeOf(response)]).toEqual([400, 'body_aborted'])
  })

  it('treats a request without a body as an empty one', async () => {
    const { receiver } = setUp()
    const empty = signedRequest('', secret)
    const response = await serveFetch(receiver)(new Request('http://localhost/', { method, headers: empty.headers }))
    expect(await codeOf(response)).toBe('body_not_json')
  })
})

it.each([
  ['/analytics/', '/analytics/v1/batch', '/v1/batch', ['/v1/batch']],
  ['/webhooks', '/webhooks', '/webhooks'],
  ['/webhooks', '/webhooks/', ''],
  ['/webhooks', '/webhooks/more', ''],
  ['/webhooks/', '/webhooks/', '/webhooks/'],
])('at the path %s, a request for %s reaches the endpoint as %j', async (path, target, expected, routes?: string[]) => {
  const handle = async ({ path }: { readonly path: string }) => ({ status: 200, headers: {}, body: path })
  const handler = serveFetch({ ...(routes && { routes }), handle }, { path })
  const answer = await handler(new Request(`http://localhost${target}`))
  expect([answer.status, await answer.text()]).toEqual([expected === '' ? 404 : 200, expected])
})

describe('serve throws a TypeError', () => {
  const { receiver } = setUp()
  const all = [serveNode, serveExpress, serveKoa, serveFetch, serveLambda]

  it.each(all)('for a path that can never match, an unknown option, and options that are none', (serve) => {
    for (const path of ['', 'webhooks', '/webhooks?x', '/webhooks#x', 5]) {
      expect(() => serve(receiver, { path: path as string })).toThrow(/^`path`/)
    }
    expect(() => serve(receiver, { paht: '/webhooks' } as never)).toThrow(/`paht`.*`path`/)
    expect(() => serve(receiver, '/webhooks' as never)).toThrow(TypeError)
  })

  it.each([...all, serveFastify])('for anything but an endpoint', (serve) => {
    for (const endpoint of [undefined, {}, () => {}]) {
      expect(() => serve(endpoint as never)).toThrow(/^`serve: endpoint`/)
    }
  })

  it('for the options of a route, given to the serve of Fastify', () => {
    expect(() => serveFastify(receiver, ...([{ path: '/webhooks' }] as unknown as []))).toThrow(/^`serve`/)
  })
})

/** The `serve` of one framework in another one: the error names the right import. And mocks of requests, in tests of users. */

import { EventEmitter } from 'node:events'
import http from 'node:http'
import { PassThrough } from 'node:stream'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveFetch } from '../../adapters/fetch.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveLambda } from '../../adapters/lambda.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { GATEWAYS } from '../support/lambda.ts'
import { setUp as createParts, secret, watchWarnings } from '../support/receive.ts'

function setUp() {
  const parts = createParts()
  parts.receiver.on('*', () => {})
  return parts
}

const serves = {
  express: serveExpress,
  fastify: serveFastify,
  fetch: serveFetch,
  koa: serveKoa,
  lambda: serveLambda,
  node: serveNode,
} as const
type Name = keyof typeof serves

/** What a host does with a handler of `hookline/<name>`: returns what it throws at the mount, or for the first request. */
type Call = (handler: never) => Promise<unknown>

/** Returns the error that a framework gives to what it was told to call. */
async function thrownIn(run: (keep: (error: unknown) => void) => unknown): Promise<unknown> {
  let thrown: unknown
  await run((error) => {
    thrown = error
  })
  return thrown
}

const hosts: Readonly<Record<string, Call>> = {
  Express: (handler) =>
    thrownIn((keep) => {
      const app = express().post('/webhooks', handler)
      app.use((error: unknown, _request: unknown, response: http.ServerResponse, _next: unknown) => {
        keep(error)
        response.end()
      })
      return request(app).post('/webhooks').send({})
    }),
  Koa: (handler) =>
    thrownIn((keep) => {
      const app = new Koa().use(handler).on('error', keep)
      return request(app.callback()).post('/webhooks').send({})
    }),
  'Fastify, registered': (handler) => call(handler, fastify(), {}, () => {}), // What a plugin throws ends the process.
  'Fastify, a route': (handler) =>
    thrownIn((keep) => {
      const app = fastify()
      app.setErrorHandler((error, _request, reply) => reply.send(keep(error) ?? ''))
      app.post('/webhooks', handler)
      return app.inject({ method: 'POST', url: '/webhooks', payload: {} })
    }),
  Hono: (handler) =>
    thrownIn((keep) => {
      const app = new Hono().onError((error, context) => context.body(keep(error) ?? null))
      return app.post('/webhooks', handler).request('/webhooks', { method: 'POST', body: '{}' })
    }),
  'a web Request': (handler) => call(handler, new Request('http://localhost/webhooks', { method: 'POST', body: '{}' })),
  Lambda: (handler) => {
    const body = Buffer.from('{}')
    return call(handler, GATEWAYS['HTTP API']({ method: 'POST', path: '/', query: '', headers: [], body }, true), {})
  },
  'node:http': (handler) =>
    thrownIn((keep) => {
      const server = http.createServer(async (...args) => {
        keep(await call(handler, ...args))
        args[1].end()
      })
      return request(server).post('/webhooks').send({})
    }),
}

async function call(handler: (...args: readonly unknown[]) => unknown, ...args: readonly unknown[]): Promise<unknown> {
  try {
    await handler(...args)
  } catch (error) {
    return error
  }
  return undefined
}

/** The right import of each host; where others work there, too, which. */
const RIGHT: readonly (readonly [host: string, right: Name, ...working: Name[]])[] = [
  ['Express', 'express', 'node'],
  ['Koa', 'koa'],
  ['Fastify, registered', 'fastify'],
  ['Fastify, a route', 'fastify'],
  ['Hono', 'fetch'],
  ['a web Request', 'fetch'],
  ['Lambda', 'lambda'],
  ['node:http', 'node', 'express'],
]

describe.each(RIGHT)('in %s', (host, right, ...working) => {
  const wrong = (Object.keys(serves) as Name[]).filter((name) => !working.includes(name))
  const isMisused = host === 'Hono' || host === 'Fastify, a route' // Its own `serve` is to be called or mounted otherwise.
  it.each(wrong.filter((name) => isMisused || name !== right))('hookline/%s names the import', async (name) => {
    const { receiver } = setUp()
    const thrown = await hosts[host]?.(serves[name](receiver) as never)
    expect(thrown).toBeInstanceOf(TypeError)
    expect(String(thrown)).toContain(`'hookline/${right}'`)
  })
})

it.each([
  ['of one path', setUp().receiver, '/webhooks'],
  ['with routes', { routes: ['/a'], handle: () => undefined }, '/webhooks/a'],
])('a path that a router has cut off before is warned about once: an endpoint %s', async (_which, endpoint, path) => {
  const warn = watchWarnings()
  const app = express().use('/webhooks', serveExpress(endpoint, { path: '/webhooks' }))
  for (const target of [path, path, '/other']) expect((await request(app).post(target)).status).toBe(404)
  expect(warn.mock.calls.map(([, options]) => options)).toEqual([{ code: 'HOOKLINE_PATH' }])
})

describe('a request that a test made up', () => {
  const { headers, body, method } = signedRequest(fixtures.track, secret)
  const incoming = () => ({ method, url: '/webhooks', headers: { ...headers }, body: Buffer.from(body) })
  /** The least of a response: no `req`, no events, no socket. */
  const response = () => {
    const written = Promise.withResolvers<number>()
    let status = 0
    return {
      answered: written.promise,
      writeHead(code: number) {
        status = code
        return this
      },
      end: () => written.resolve(status),
    }
  }
  const contextOf = (req: object, res: object) => ({ req, res, request: {}, url: '/webhooks', status: 0, set() {} })

  it.each(['express', 'node'] as const)('is answered by hookline/%s', async (name) => {
    const { receiver } = setUp()
    const outgoing = response()
    const next = (error: unknown) => expect.unreachable(String(error))
    serves[name](receiver)(incoming() as never, outgoing as never, next)
    expect(await outgoing.answered).toBe(200)
  })

  it('is answered by hookline/koa', async () => {
    const { receiver } = setUp()
    const context = contextOf(incoming(), response())
    await serveKoa(receiver)(context as never, async () => {})
    expect(context.status).toBe(200)
  })

  it.each([
    ['without headers', { ...incoming(), headers: undefined }, response()],
    ['whose response is that of Express alone', incoming(), { status: () => ({ json() {} }) }],
    ['without a response', incoming(), undefined],
  ])('is an error that the caller sees: one %s', (_what, given, outgoing) => {
    const { receiver } = setUp()
    expect(() => serveExpress(receiver)(given as never, outgoing as never, () => {})).toThrow(TypeError)
    expect(() => serveNode(receiver)(given as never, outgoing as never)).toThrow(TypeError)
    expect(() => serveKoa(receiver)(contextOf(given, outgoing as never) as never, async () => {})).toThrow(TypeError)
  })
})

describe('a stream that cannot be read', () => {
  const { headers, body } = signedRequest(fixtures.track, secret)
  const closings: readonly (readonly [string, (stream: PassThrough) => unknown])[] = [
    ['is closed to readers', (stream) => Object.defineProperty(stream, 'readable', { value: false })],
    ['was destroyed', (stream) => stream.destroy()],
    ['was destroyed, as node:http does it', (stream) => Object.assign(stream, { aborted: true }).destroy()],
    ['was read by something else', (stream) => stream.end('x').read()],
  ]
  const answer = async (fields: object, close: (stream: PassThrough) => unknown) => {
    const stream = Object.assign(new PassThrough(), { url: '/', method: 'POST', httpVersionMajor: 1, complete: true })
    Object.assign(stream, { headers: { ...headers }, ...fields })
    close(stream)
    const { receiver, errors } = setUp()
    const outgoing = Object.assign(new EventEmitter(), { writeHead: () => outgoing, end: () => outgoing.emit('done') })
    serveNode(receiver)(stream as never, outgoing as never)
    await new Promise((resolve) => outgoing.on('done', resolve))
    return errors[0]?.code
  }

  it.each(closings)('and %s: its copies count, and without one it is body_consumed', async (_how, close) => {
    expect(await answer({ rawBody: Buffer.from(body) }, close)).toBeUndefined()
    expect(await answer({ body }, close)).toBeUndefined()
    expect(await answer({}, close)).toBe('body_consumed')
  })

  it.each([1, 2])('because its client disconnected in the middle of it: body_aborted, HTTP/%i', async (version) => {
    const left = { aborted: true, complete: version === 2, httpVersionMajor: version }
    expect(await answer(left, (stream) => stream.destroy())).toBe('body_aborted')
    expect(await answer({ ...left, body: {} }, (stream) => stream.destroy())).toBe('body_aborted')
  })
})

/** Every framework that has an adapter, as the contract suites start it: a body parser, the endpoint, a neighbour route. */

import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import express5 from 'express'
import express4 from 'express4'
import fastify5 from 'fastify'
import fastify4 from 'fastify4'
import Koa3 from 'koa'
import Koa2 from 'koa2'
import getRawBody from 'raw-body'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveFetch } from '../../adapters/fetch.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveLambda } from '../../adapters/lambda.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import type { Endpoint } from '../../src/host/endpoint.ts'
import { clientOfLambda, GATEWAYS } from './lambda.ts'
import { type Client, clientOfFetch, clientOfHttp1, clientOfHttp2 } from './wire.ts'

/** The body parser that runs before the endpoint, by what it leaves of the body. */
export type Before = 'nothing' | 'raw' | 'rawBody' | 'text' | 'rawBody-text' | 'json'

export interface Running extends Client {
  /** Undefined when there is no socket. */
  readonly port?: number
  close(): Promise<void>
}

export interface Host {
  readonly name: string
  readonly http: 1 | 2 | undefined
  /** Whether the host reads whole requests before it calls the adapter, and sends whole answers. */
  readonly isBuffered?: boolean
  readonly befores: readonly Before[]
  /** Whether it is an older major of a framework, which the contract tests with a few requests only. */
  readonly isOlder?: boolean
  /** Whether a path that is not the endpoint's goes on to a next handler, which answers `/neighbour` with the JSON it got. */
  readonly hasNeighbour: boolean
  start(endpoint: Endpoint, before: Before): Promise<Running>
  /** Each way to mount an endpoint with routes at `/tools/hookline`, by its name. */
  readonly mounts: Readonly<Record<string, (endpoint: Endpoint) => Promise<Running>>>
}

type Server = http.Server | http2.Http2Server

async function listen(server: Server, version: 1 | 2 = 1): Promise<Running> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    ...(version === 1 ? clientOfHttp1(port) : clientOfHttp2(port)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  }
}

async function parseAs(before: Before, stream: Readable, target: Record<string, unknown>): Promise<void> {
  if (before === 'nothing') return
  const bytes = await getRawBody(stream)
  const text = new TextDecoder().decode(bytes)
  if (before === 'raw') target.body = bytes
  if (before === 'rawBody') target.rawBody = bytes
  if (before === 'text') target.body = text
  if (before === 'rawBody-text') target.rawBody = text
  if (before === 'json') target.body = parseJson(text)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function express(name: string, framework: typeof express5): Host {
  const always = { type: () => true, limit: '1mb' }
  const parsers = {
    raw: () => framework.raw(always),
    text: () => framework.text(always),
    json: () => framework.json(always),
  }
  type App = ReturnType<typeof framework>
  const mounted = (mount: (app: App, endpoint: Endpoint) => void) => (endpoint: Endpoint) => {
    const app = framework()
    mount(app, endpoint)
    return listen(http.createServer(app))
  }
  return {
    name,
    http: 1,
    mounts: {
      'app.use': mounted((app, endpoint) => app.use('/tools/hookline', serveExpress(endpoint))),
      'a path': mounted((app, endpoint) => app.use(serveExpress(endpoint, { path: '/tools/hookline' }))),
      'a router below a router': mounted((app, endpoint) => {
        const [outer, inner] = [framework.Router(), framework.Router()]
        inner.use('/hookline', serveExpress(endpoint))
        outer.use('/tools', inner)
        app.use(outer)
      }),
    },
    befores: ['nothing', 'raw', 'rawBody', 'text', 'json'],
    hasNeighbour: true,
    start(endpoint, before) {
      const app = framework()
      const parser = parsers[before as keyof typeof parsers]
      if (parser !== undefined) app.use(parser())
      else
        app.use((request, _response, next) => void parseAs(before, request, request as never).then(() => next(), next))
      app.use('/webhooks', serveExpress(endpoint))
      app.post('/neighbour', framework.json(), (request, response) => void response.json(request.body))
      return listen(http.createServer(app))
    },
  }
}

function koa(name: string, Framework: typeof Koa3): Host {
  const mounted = (endpoint: Endpoint, path: string, cut: string) => {
    const app = new Framework()
    app.use((context, next) => {
      context.path = context.path.slice(cut.length)
      return next()
    })
    return listen(http.createServer(app.use(serveKoa(endpoint, { path })).callback()))
  }
  return {
    name,
    http: 1,
    mounts: {
      'a path': (endpoint) => mounted(endpoint, '/tools/hookline', ''),
      'a path below a mount': (endpoint) => mounted(endpoint, '/hookline', '/tools'),
    },
    befores: ['nothing', 'raw', 'rawBody', 'text', 'rawBody-text', 'json'],
    hasNeighbour: true,
    start(endpoint, before) {
      const app = new Framework()
      app.silent = true
      app.use(async (context, next) => {
        await parseAs(before, context.req, context.request as never)
        return next()
      })
      app.use(serveKoa(endpoint, { path: '/webhooks' }))
      app.use(async (context) => {
        if (context.path !== '/neighbour') return
        const request = context.request as { body?: unknown }
        context.body = request.body ?? JSON.parse((await getRawBody(context.req)).toString())
      })
      return listen(http.createServer(app.callback()))
    },
  }
}

function fastify(name: string, framework: typeof fastify5): Host {
  type App = ReturnType<typeof framework>
  async function listenOn(app: App): Promise<Running> {
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    return { port, ...clientOfHttp1(port), close: () => app.close() }
  }
  const mounted = (endpoint: Endpoint, options: object, prefix = '') => {
    const app = framework({ forceCloseConnections: true })
    app.register(async (scope) => void scope.register(serveFastify(endpoint), options), { prefix })
    return listenOn(app)
  }
  return {
    name,
    http: 1,
    mounts: {
      'a prefix': (endpoint) => mounted(endpoint, { prefix: '/tools/hookline' }),
      'a path': (endpoint) => mounted(endpoint, { path: '/tools/hookline' }),
      'a prefix below a prefix': (endpoint) => mounted(endpoint, { prefix: '/hookline' }, '/tools'),
      'a path below a prefix': (endpoint) => mounted(endpoint, { path: '/hookline' }, '/tools'),
      'a rewritten URL': (endpoint) => {
        const rewriteUrl = ({ url = '' }: http.IncomingMessage) => url.replace('/tools/', '/')
        const app = framework({ forceCloseConnections: true, rewriteUrl })
        app.register(serveFastify(endpoint), { path: '/hookline' })
        return listenOn(app as unknown as App)
      },
    },
    befores: ['nothing', 'rawBody'],
    hasNeighbour: true,
    async start(endpoint, before) {
      const app = framework({ forceCloseConnections: true })
      if (before === 'rawBody') {
        app.addHook('preParsing', async (request, _reply, payload) => {
          if (request.url.startsWith('/webhooks')) await parseAs(before, payload as Readable, request as never)
          return payload
        })
      }
      app.register(serveFastify(endpoint), { path: '/webhooks' })
      app.post('/neighbour', async (request) => request.body)
      return listenOn(app as unknown as App)
    },
  }
}

function node(name: string, version: 1 | 2): Host {
  const create = (listener: object): Promise<Running> =>
    version === 1 ? listen(http.createServer(listener as never)) : listen(http2.createServer(listener as never), 2)
  return {
    mounts: { 'a path': (endpoint) => create(serveNode(endpoint, { path: '/tools/hookline' })) },
    name,
    http: version,
    befores: ['nothing', 'raw', 'rawBody', 'text', 'rawBody-text', 'json'],
    hasNeighbour: false,
    start(endpoint, before) {
      const listener = serveNode(endpoint, { path: '/webhooks' })
      const wrapped = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
        await parseAs(before, request, request as never)
        listener(request, response)
      }
      return create(wrapped)
    },
  }
}

const startFetch = async (endpoint: Endpoint, path: string): Promise<Running> => ({
  ...clientOfFetch(serveFetch(endpoint, { path })),
  close: async () => {},
})

const fetchHost: Host = {
  name: 'fetch',
  http: undefined,
  befores: ['nothing'],
  hasNeighbour: false,
  start: (endpoint) => startFetch(endpoint, '/webhooks'),
  mounts: { 'a path': (endpoint) => startFetch(endpoint, '/tools/hookline') },
}

export const hosts: readonly Host[] = [
  { ...express('Express 4', express4 as unknown as typeof express5), isOlder: true },
  express('Express 5', express5),
  { ...koa('Koa 2', Koa2 as unknown as typeof Koa3), isOlder: true },
  koa('Koa 3', Koa3),
  { ...fastify('Fastify 4', fastify4 as unknown as typeof fastify5), isOlder: true },
  fastify('Fastify 5', fastify5),
  node('node:http', 1),
  node('node:http2', 2),
  fetchHost,
]

/** Every gateway but the load balancer that keeps only the last of several headers of a name: the signature could be repeated. */
export const bufferedHosts: readonly Host[] = Object.entries(GATEWAYS)
  .filter(([name]) => name !== 'load balancer')
  .map(([name, toEvent]) => {
    const start = async (endpoint: Endpoint, path: string): Promise<Running> => ({
      ...clientOfLambda(serveLambda(endpoint, { path }), toEvent, true),
      close: async () => {},
    })
    return {
      name: `Lambda: ${name}`,
      http: undefined,
      isBuffered: true,
      befores: ['raw'],
      hasNeighbour: false,
      start: (endpoint) => start(endpoint, '/webhooks'),
      mounts: { 'a path': (endpoint) => start(endpoint, '/tools/hookline') },
    }
  })

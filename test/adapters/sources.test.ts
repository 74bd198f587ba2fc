/** Many sources on one mount: in each framework, the path from which a receiver names the source. */

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import express5 from 'express'
import express4 from 'express4'
import fastify5 from 'fastify'
import fastify4 from 'fastify4'
import { Hono } from 'hono'
import Koa from 'koa'
import { expect, it, onTestFinished } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveFetch } from '../../adapters/fetch.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { type LambdaEvent, serve as serveLambda } from '../../adapters/lambda.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { Receiver } from '../../src/receive/receiver-types.ts'
import type { SourceRequest } from '../../src/receive/secrets.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'

type Post = (path: string, init: RequestInit) => Promise<Response>

async function listen(listener: http.RequestListener): Promise<Post> {
  const server = http.createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init)
}

function express(framework: typeof express5) {
  return (receiver: Receiver) => {
    const app = framework()
    app.post('/webhooks/:source', serveExpress(receiver))
    return listen(app)
  }
}

function fastify(framework: typeof fastify5) {
  return async (receiver: Receiver): Promise<Post> => {
    const app = framework()
    app.register(serveFastify(receiver), { path: '/webhooks/:source' })
    await app.ready()
    return listen((request, response) => void app.routing(request, response))
  }
}

const hosts: readonly (readonly [string, (receiver: Receiver) => Post | Promise<Post>])[] = [
  ['Express 4', express(express4 as unknown as typeof express5)],
  ['Express 5', express(express5)],
  ['Fastify 4', fastify(fastify4 as unknown as typeof fastify5)],
  ['Fastify 5', fastify(fastify5)],
  [
    'Koa',
    (receiver) => {
      const router = new Router()
      router.post('/webhooks/:source', serveKoa(receiver))
      return listen(new Koa().use(router.routes()).callback())
    },
  ],
  ['node:http', (receiver) => listen(serveNode(receiver))],
  [
    'Hono',
    (receiver) => {
      const webhook = serveFetch(receiver)
      const app = new Hono()
      app.post('/webhooks/:source', (context) => webhook(context.req.raw))
      return async (path, init) => app.request(path, init)
    },
  ],
  [
    'Lambda',
    (receiver) =>
      async (target, { method, headers, body }) => {
        const [path, rawQueryString = ''] = target.split('?')
        const request = { rawPath: path, rawQueryString, requestContext: { http: { method } }, headers, body }
        return new Response(null, { status: (await serveLambda(receiver)(request as LambdaEvent)).statusCode })
      },
  ],
]

it.each(hosts)('%s', async (_name, start) => {
  const sources: (string | undefined)[] = []
  const queries: string[] = []
  const source = ({ path, query }: SourceRequest): string | undefined => {
    queries.push(query)
    return /^\/webhooks\/(\w+)$/.exec(path)?.[1]
  }
  const receiver = createReceiver({
    secret: { source, secrets: (source) => `of ${source}` },
    onError: () => {},
  })
  receiver.on('*', (_message, delivery) => sources.push(delivery.source))
  const post = await start(receiver)
  const send = async (path: string, secret: string) => {
    const { body, headers } = signedRequest(fixtures.track, secret)
    return (await post(path, { method: 'POST', body, headers: { ...headers } })).status
  }
  expect(await send('/webhooks/shop?x=1', 'of shop')).toBe(200)
  expect(await send('/webhooks/app', 'of app')).toBe(200)
  expect(await send('/webhooks/app', 'of shop')).toBe(401)
  expect(sources).toEqual(['shop', 'app'])
  expect(queries).toEqual(['x=1', '', ''])
})

import { createServer } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import Router from '@koa/router'
import express5 from 'express'
import express4 from 'express4'
import fastify5 from 'fastify'
import fastify4 from 'fastify4'
import { Hono } from 'hono'
import Koa3 from 'koa'
import Koa2 from 'koa2'
import { expectTypeOf, test } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveFetch } from '../../adapters/fetch.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import { createReceiver } from '../../src/index.ts'

const receiver = createReceiver({ secret: 's' })

test('what serve returns fits the types of every supported major', () => {
  express4().post('/webhooks', serveExpress(receiver)).use('/webhooks', serveExpress(receiver))
  express5().post('/webhooks', serveExpress(receiver)).use('/webhooks', serveExpress(receiver))
  express5.Router().post('/webhooks', serveExpress(receiver))
  new Koa2().use(serveKoa(receiver, { path: '/webhooks' }))
  new Koa3().use(serveKoa(receiver, { path: '/webhooks' }))
  new Router().post('/webhooks', serveKoa(receiver))
  fastify4().register(serveFastify(receiver), { path: '/webhooks', prefix: '/hooks' })
  fastify5().register(serveFastify(receiver), { path: '/webhooks', prefix: '/hooks' })
  fastify5({ logger: true }).register(serveFastify(receiver))
  fastify5({ http2: true }).register(serveFastify(receiver), { path: '/webhooks' })
  createServer(serveNode(receiver, { path: '/webhooks' }))
  createHttpsServer(serveNode(receiver))
  createHttp2Server(serveNode(receiver))
  createSecureServer(serveNode(receiver))
  new Hono().post('/webhooks', (context) => serveFetch(receiver)(context.req.raw))
  expectTypeOf(serveFetch(receiver)).toEqualTypeOf<(request: Request) => Promise<Response>>()
})

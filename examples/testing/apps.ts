/** The orders app in each framework, as a server that the tests beside it drive. */

import { createServer, type Server } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import type { Receiver } from 'hookline'
import { serve as serveExpress } from 'hookline/express'
import { serve as serveFastify } from 'hookline/fastify'
import { serve as serveKoa } from 'hookline/koa'
import { serve as serveNode } from 'hookline/node'
import Koa from 'koa'

/** Each takes webhooks at `/webhooks`. */
export const apps: Readonly<Record<string, (receiver: Receiver) => Promise<Server>>> = {
  async Express(receiver) {
    const app = express()
    app.post('/webhooks', serveExpress(receiver))
    return createServer(app)
  },

  async Koa(receiver) {
    const app = new Koa()
    app.use(serveKoa(receiver, { path: '/webhooks' }))
    return createServer(app.callback())
  },

  async Fastify(receiver) {
    const app = Fastify()
    app.register(serveFastify(receiver), { path: '/webhooks' })
    await app.ready()
    return app.server
  },

  async 'node:http'(receiver) {
    return createServer(serveNode(receiver, { path: '/webhooks' }))
  },
}

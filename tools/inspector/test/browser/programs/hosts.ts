/** The frameworks that the app runs in. */

import type { IncomingMessage, RequestListener } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { serve as serveExpress } from 'hookline/express'
import { serve as serveFastify } from 'hookline/fastify'
import type { Inspector } from 'hookline/inspector'
import { serve as serveKoa } from 'hookline/koa'
import Koa from 'koa'

/** An app of a framework: endpoints by their paths. */
export interface Host {
  mount(path: string, endpoint: Parameters<typeof serveExpress>[0]): void
  /** Mounts it as the guide does. */
  show(path: string, inspector: Inspector): void
  listener(): Promise<RequestListener>
}

export const hosts: Readonly<Record<'express' | 'fastify' | 'koa', () => Host>> = {
  express() {
    const app = express()
    return {
      mount: (path, endpoint) => void app.use(path, serveExpress(endpoint)),
      show: (path, { handler }) => void app.use(path, handler),
      listener: async () => app,
    }
  },
  fastify() {
    const app = Fastify()
    return {
      mount: (path, endpoint) => void app.register(serveFastify(endpoint), { path }),
      show(path, { handler }) {
        app.all(`${path}*`, {
          onRequest({ raw }, reply) {
            reply.hijack()
            handler(below(path, raw), reply.raw)
          },
          handler() {},
        })
      },
      async listener() {
        await app.ready()
        return (request, response) => app.routing(request, response)
      },
    }
  },
  koa() {
    const app = new Koa()
    return {
      mount: (path, endpoint) => void app.use(serveKoa(endpoint, { path })),
      show(path, { handler }) {
        app.use((context, next) => {
          if (!`${context.path}/`.startsWith(`${path}/`)) return next()
          context.respond = false
          return handler(below(path, context.req), context.res)
        })
      },
      listener: async () => app.callback(),
    }
  },
}

function below(path: string, request: IncomingMessage): IncomingMessage {
  const { url: originalUrl = '' } = request
  return Object.assign(request, { originalUrl, url: originalUrl.slice(path.length) })
}

/** The frameworks that the app runs in. */

import type { RequestListener } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { serve as serveExpress } from 'hookline/express'
import { serve as serveFastify } from 'hookline/fastify'
import { serve as serveKoa } from 'hookline/koa'
import Koa from 'koa'

/** An app of a framework: endpoints by their paths. */
export interface Host {
  mount(path: string, endpoint: Parameters<typeof serveExpress>[0]): void
  listener(): Promise<RequestListener>
}

export const hosts: Readonly<Record<'express' | 'fastify' | 'koa', () => Host>> = {
  express() {
    const app = express()
    return {
      mount: (path, endpoint) => void app.use(path, serveExpress(endpoint)),
      listener: async () => app,
    }
  },
  fastify() {
    const app = Fastify()
    return {
      mount: (path, endpoint) => void app.register(serveFastify(endpoint), { path }),
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
      listener: async () => app.callback(),
    }
  },
}

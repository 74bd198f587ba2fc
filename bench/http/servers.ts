/**
 * The servers of each framework: the floor, which is the framework's cheapest way to a raw body, an HMAC and JSON.parse; and Hookline.
 * A process loads one framework only.
 */

import { createServer, type Server } from 'node:http'
import { createReceiver, type Receiver } from 'hookline'
import type { Contender } from '../contender.ts'
import { secret } from '../message.ts'
import { acceptBare, answerBody, answerHeaders, handle, handled, listen, path, readBare } from './host.ts'

const SIGNATURE = 'x-signature'
const LIMIT = 256 * 1024

const receiver = (): Receiver => createReceiver({ secret, onError: () => {} }).on('track', handle)

const node = {
  floor: async () =>
    createServer((request, response) => {
      readBare(request, (body) => {
        if (!acceptBare(body, request.headers[SIGNATURE])) return void response.writeHead(401).end()
        response.writeHead(200, answerHeaders).end(answerBody)
      })
    }),
  async hookline() {
    const { serve } = await import('hookline/node')
    return createServer(serve(receiver(), { path }))
  },
}

const fastify = {
  async floor() {
    const { fastify } = await import('fastify')
    const app = fastify({ bodyLimit: LIMIT })
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    app.post(path, (request, reply) => {
      if (!acceptBare(request.body as Buffer, request.headers[SIGNATURE])) return void reply.code(401).send()
      reply.header('content-type', 'application/json').send(answerBytes) // To text it would add a charset.
    })
    await app.ready()
    return app.server
  },
  async hookline() {
    const [{ fastify }, { serve }] = await Promise.all([import('fastify'), import('hookline/fastify')])
    const app = fastify()
    app.register(serve(receiver()), { path })
    await app.ready()
    return app.server
  },
}

const answerBytes = Buffer.from(answerBody)

const koa = {
  async floor() {
    const { default: Koa } = await import('koa')
    const app = new Koa()
    app.use(
      (context) =>
        new Promise<void>((resolve) => {
          readBare(context.req, (body) => {
            context.status = acceptBare(body, context.req.headers[SIGNATURE]) ? 200 : 401
            context.set('content-type', 'application/json')
            context.body = answerBody
            resolve()
          })
        }),
    )
    return createServer(app.callback())
  },
  async hookline() {
    const [{ default: Koa }, { serve }] = await Promise.all([import('koa'), import('hookline/koa')])
    const app = new Koa()
    app.use(serve(receiver(), { path }))
    return createServer(app.callback())
  },
}

const express = {
  async floor() {
    const { default: express } = await import('express')
    const app = express()
    app.post(path, express.raw({ type: 'application/json', limit: LIMIT }), (request, response) => {
      if (!acceptBare(request.body as Buffer, request.headers[SIGNATURE])) return void response.sendStatus(401)
      response.writeHead(200, answerHeaders).end(answerBody)
    })
    return createServer(app)
  },
  async hookline() {
    const [{ default: express }, { serve }] = await Promise.all([import('express'), import('hookline/express')])
    const app = express()
    app.post(path, serve(receiver()))
    return createServer(app)
  },
}

const servers = { node, fastify, koa, express } as const satisfies Readonly<
  Record<string, Readonly<Record<ServerKind, () => Promise<Server>>>>
>

export type Framework = keyof typeof servers
export type ServerKind = 'floor' | 'hookline'

/** Its requests come from elsewhere. */
export async function openContender(framework: Framework, kind: ServerKind): Promise<Contender> {
  const server = await servers[framework][kind]()
  return { hello: await listen(server), figures: () => ({ handled: handled() }) }
}

/** A receiver and a collector in one app of each framework, mounted as users write it, driven by supertest. */

import http, { type RequestListener, type Server } from 'node:http'
import { bodyParser } from '@koa/bodyparser'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import getRawBody from 'raw-body'
import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import type { Collector } from '../../src/collector/api.ts'
import type { HooklineError } from '../../src/message/error.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { basic, setUpCollector, writeKey } from '../support/collect.ts'

const secret = 'a shared secret'

type Receiver = ReturnType<typeof createReceiver>
type App = RequestListener | Server

interface Host {
  readonly name: string
  mount(receiver: Receiver, collector: Collector): App | Promise<App>
}

async function readJson(incoming: http.IncomingMessage): Promise<unknown> {
  return JSON.parse((await getRawBody(incoming)).toString())
}

const hosts: readonly Host[] = [
  {
    name: 'Express',
    mount: (receiver, collector) =>
      express()
        .post('/webhooks', serveExpress(receiver))
        .use('/analytics', serveExpress(collector))
        .use(express.json())
        .post('/echo', (incoming, response) => void response.json(incoming.body)),
  },
  {
    name: 'Koa',
    mount: (receiver, collector) =>
      new Koa()
        .use(serveKoa(receiver, { path: '/webhooks' }))
        .use(serveKoa(collector, { path: '/analytics' }))
        .use(bodyParser())
        .use((context) => {
          if (context.path === '/echo') context.body = context.request.body
        })
        .callback(),
  },
  {
    name: 'Fastify',
    async mount(receiver, collector) {
      const app = Fastify()
      app.register(serveFastify(receiver), { path: '/webhooks' })
      app.register(serveFastify(collector), { prefix: '/analytics' })
      app.post('/echo', async (incoming) => incoming.body)
      await app.ready()
      return app.server
    },
  },
  {
    name: 'node:http',
    mount(receiver, collector) {
      const webhooks = serveNode(receiver, { path: '/webhooks' })
      const analytics = serveNode(collector, { path: '/analytics' })
      return http.createServer(async (incoming, response) => {
        if (incoming.url?.startsWith('/analytics/')) analytics(incoming, response)
        else if (incoming.url === '/echo') response.end(JSON.stringify(await readJson(incoming)))
        else webhooks(incoming, response)
      })
    },
  },
]

describe.each(hosts)('$name', ({ mount }) => {
  async function start() {
    const events: string[] = []
    const errors: HooklineError[] = []
    const receiver = createReceiver({ secret, onError: (error) => errors.push(error) })
    receiver.on('track', ({ event }) => events.push(event))
    const { collector, destination } = setUpCollector()
    const app = await mount(receiver, collector)
    const post = (path: string) => {
      const { headers, body } = signedRequest(fixtures.track, secret)
      return request(app).post(path).set(headers).send(body)
    }
    return { app, post, events, errors, destination }
  }

  it('answers a signed message 200', async () => {
    const { post, events } = await start()
    const { status, body } = await post('/webhooks')
    expect([status, body]).toEqual([200, { ok: true }])
    expect(events).toEqual(['Order Completed'])
  })

  it.each(['/webhook', '/webhooks/more', '/analytics/v2/batch', '/v1/batch'])('answers %s 404', async (path) => {
    const { post, errors } = await start()
    expect((await post(path)).status).toBe(404)
    expect(errors).toEqual([])
  })

  it('serves the collector below its prefix', async () => {
    const { app, destination } = await start()
    const { status, body } = await request(app)
      .post('/analytics/v1/batch?source=test')
      .set({ authorization: basic(writeKey) })
      .send({ batch: [{ type: 'page', userId: 'u' }] })
    expect([status, body]).toMatchObject([200, { accepted: 1 }])
    expect(destination.messages).toMatchObject([{ type: 'page', userId: 'u' }])
  })

  it('leaves the body parser of routes after it alone', async () => {
    const { app } = await start()
    const { status, text } = await request(app).post('/echo').send({ total: 39.5 })
    expect([status, JSON.parse(text)]).toEqual([200, { total: 39.5 }])
  })
})

/** A receiver and a collector in one app of each framework, mounted as users write it, driven by supertest. */

import http, { type RequestListener, type Server } from 'node:http'
import { bodyParser } from '@koa/bodyparser'
import express from 'express'
import Fastify from 'fastify'
import Koa from 'koa'
import getRawBody from 'raw-body'
import request from 'supertest'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import type { Collector } from '../../src/collector/api.ts'
import type { BodySource } from '../../src/http/body.ts'
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
  mountBehindParser(receiver: Receiver): App | Promise<App>
  readonly behindParser: { readonly source: BodySource; readonly spaced: 200 | 500 }
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
    mountBehindParser: (receiver) => express().use(express.json()).post('/webhooks', serveExpress(receiver)),
    behindParser: { source: 'reserialised', spaced: 500 },
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
    mountBehindParser: (receiver) =>
      new Koa()
        .use(bodyParser())
        .use(serveKoa(receiver, { path: '/webhooks' }))
        .callback(),
    behindParser: { source: 'rawBody-text', spaced: 200 },
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
    async mountBehindParser(receiver) {
      const app = Fastify()
      app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
        done(null, JSON.parse(String(text)))
      })
      app.register(serveFastify(receiver), { path: '/webhooks' })
      await app.ready()
      return app.server
    },
    behindParser: { source: 'stream', spaced: 200 },
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
    mountBehindParser(receiver) {
      const webhooks = serveNode(receiver, { path: '/webhooks' })
      return http.createServer(async (incoming, response) => {
        Object.assign(incoming, { body: await readJson(incoming) })
        webhooks(incoming, response)
      })
    },
    behindParser: { source: 'reserialised', spaced: 500 },
  },
]

beforeEach(() => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {}) // A body that is serialised again is warned about.
})

describe.each(hosts)('$name', ({ mount, mountBehindParser, behindParser }) => {
  async function start(options: { limit?: number } = {}, isBehindParser = false) {
    const events: string[] = []
    const sources: BodySource[] = []
    const errors: HooklineError[] = []
    const receiver = createReceiver({ secret, onError: (error) => errors.push(error), ...options })
    receiver.on('track', ({ event }, { bodySource }) => {
      events.push(event)
      sources.push(bodySource)
    })
    const { collector, destination } = setUpCollector()
    const app = isBehindParser ? await mountBehindParser(receiver) : await mount(receiver, collector)
    const post = (path: string, text: string, key = secret) => {
      const { headers, body } = signedRequest(text, key)
      return request(app).post(path).set(headers).send(body)
    }
    return { app, post, events, sources, errors, destination }
  }

  const track = JSON.stringify(fixtures.track)
  const spaced = JSON.stringify(fixtures.track, undefined, 2)

  it('answers a signed message 200', async () => {
    const { post, events, sources } = await start()
    const { status, body } = await post('/webhooks', spaced)
    expect([status, body]).toEqual([200, { ok: true }])
    expect([events, sources]).toEqual([['Order Completed'], ['stream']])
  })

  it('answers a forged message 401', async () => {
    const { post, events } = await start()
    const { status, body, type } = await post('/webhooks', track, 'another secret')
    expect([status, body.code, type]).toEqual([401, 'signature_mismatch', 'application/problem+json'])
    expect(events).toEqual([])
  })

  it('answers a body over the limit 413', async () => {
    const { post } = await start({ limit: track.length - 1 })
    const { status, body } = await post('/webhooks', track)
    expect([status, body.code]).toEqual([413, 'body_too_large'])
  })

  it.each(['/webhook', '/webhooks/more', '/analytics/v2/batch', '/v1/batch'])('answers %s 404', async (path) => {
    const { post, errors } = await start()
    expect((await post(path, track)).status).toBe(404)
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

  it('finds a body that a parser before it has read', async () => {
    const { post, sources } = await start({}, true)
    expect((await post('/webhooks', track)).status).toBe(200)
    expect(sources).toEqual([behindParser.source])
  })

  it(`answers ${behindParser.spaced} to a body that JSON.stringify writes in another way`, async () => {
    const { post, events } = await start({}, true)
    const { status, body } = await post('/webhooks', spaced)
    expect(status).toBe(behindParser.spaced)
    if (status === 200) return expect(events).toEqual(['Order Completed'])
    expect(body.code).toBe('body_consumed')
    expect(body.detail).toContain('Mount the webhook route before what reads the body (express.json()')
  })
})

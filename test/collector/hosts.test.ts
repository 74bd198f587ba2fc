/** The collector behind every adapter, over sockets of its own. */

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import express5 from 'express'
import express4 from 'express4'
import fastify5 from 'fastify'
import fastify4 from 'fastify4'
import Koa3 from 'koa'
import Koa2 from 'koa2'
import { afterEach, describe, expect, it } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveFetch } from '../../adapters/fetch.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import type { Collector } from '../../src/collector/api.ts'
import { BATCH_LIMIT } from '../../src/protocol/limits.ts'
import { basic, setUpCollector, writeKey } from '../support/collect.ts'

type Ask = (path: string, init: RequestInit) => Promise<Response>

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function listen(listener: http.RequestListener, prefix = ''): Promise<Ask> {
  const server = http.createServer(listener)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return (path, init) => fetch(`http://127.0.0.1:${port}${prefix}${path}`, init)
}

function express(framework: typeof express5, before?: 'json') {
  return (collector: Collector) => {
    const app = framework()
    if (before === 'json') app.use(framework.json())
    app.use('/analytics', serveExpress(collector))
    return listen(app, '/analytics')
  }
}

function koa(Framework: typeof Koa3) {
  return (collector: Collector) => {
    const app = new Framework()
    app.use(serveKoa(collector))
    return listen(app.callback())
  }
}

function fastify(framework: typeof fastify5) {
  return async (collector: Collector): Promise<Ask> => {
    const app = framework({ forceCloseConnections: true })
    app.register(serveFastify(collector), { prefix: '/analytics' })
    const address = await app.listen({ port: 0, host: '127.0.0.1' })
    open.push(() => app.close())
    return (path, init) => fetch(`${address}/analytics${path}`, init)
  }
}

const hosts: Readonly<Record<string, (collector: Collector) => Promise<Ask> | Ask>> = {
  'Express 4, under a mount': express(express4 as unknown as typeof express5),
  'Express 5, under a mount': express(express5),
  'Express 5, behind express.json()': express(express5, 'json'),
  'Koa 2': koa(Koa2 as unknown as typeof Koa3),
  'Koa 3': koa(Koa3),
  'Fastify 4, under a prefix': fastify(fastify4 as unknown as typeof fastify5),
  'Fastify 5, under a prefix': fastify(fastify5),
  'node:http': (collector) => listen(serveNode(collector)),
  Fetch: (collector) => {
    const handler = serveFetch(collector)
    return (path, init) => handler(new Request(`http://localhost${path}`, init))
  },
}

/** What a preflight is answered whose request names all of the URL ("absolute form", RFC 9112, 3.2.2). */
function statusOf({ hostname, port, href }: URL): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    http
      .request({ hostname, port, path: href, method: 'OPTIONS' }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      .on('error', reject)
      .end()
  })
}

describe.each(Object.entries(hosts))('%s', (name, start) => {
  const json = { 'content-type': 'application/json', authorization: basic(writeKey) }
  const call = JSON.stringify({ userId: 'u', event: 'Sold' })

  it('takes a batch', async () => {
    const { collector, destination } = setUpCollector()
    const ask = await start(collector)
    const body = JSON.stringify({ batch: [{ type: 'page', userId: 'u' }, {}] })
    const answer = await ask('/v1/batch?from=test', { method: 'POST', headers: json, body })
    expect([answer.status, await answer.json()]).toMatchObject([200, { accepted: 1, refused: [{ index: 1 }] }])
    const context = name === 'Fetch' ? {} : { ip: '127.0.0.1' }
    expect(destination.messages).toMatchObject([{ type: 'page', context }])
  })

  it('takes the text/plain of a page', async () => {
    const { collector, destination } = setUpCollector()
    const ask = await start(collector)
    const body = JSON.stringify({ userId: 'u', event: 'Sold', writeKey })
    const answer = await ask('/v1/t', { method: 'POST', body, headers: { 'content-type': 'text/plain' } })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
    expect(destination.messages).toMatchObject([{ type: 'track', event: 'Sold' }])
  })

  it('answers a preflight', async () => {
    const ask = await start(setUpCollector().collector)
    const answer = await ask('/v1/t', { method: 'OPTIONS' })
    expect([answer.status, await answer.text()]).toEqual([200, ''])
    expect(answer.headers.get('access-control-allow-methods')).toBe('POST')
  })

  if (name !== 'Fetch') {
    it('takes the path of an absolute request target', async () => {
      const ask = await start(setUpCollector().collector)
      const { url } = await ask('/v1/t?from=test', { method: 'OPTIONS' })
      expect(await statusOf(new URL(url))).toBe(200)
    })
  }

  it('leaves other paths alone', async () => {
    const ask = await start(setUpCollector().collector)
    expect((await ask('/v1/delete', { method: 'POST', headers: json, body: call })).status).toBe(404)
  })

  it('refuses GET', async () => {
    const ask = await start(setUpCollector().collector)
    expect((await ask('/v1/t', {})).status).toBe(405)
  })

  if (name.includes('behind')) return
  it.each([
    ['takes 500 KB', BATCH_LIMIT, 200],
    ['refuses a byte more', BATCH_LIMIT + 1, 413],
  ])('%s', async (_what, bytes, status) => {
    const { collector } = setUpCollector()
    const ask = await start(collector)
    const body = '{"batch":[]}'.padEnd(bytes)
    const answer = await ask('/v1/batch', { method: 'POST', headers: json, body })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([status, '*'])
  })
})

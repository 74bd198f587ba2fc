/** The frameworks that the whole path runs on: each serves an endpoint on a real socket, as its guide says. */

import http from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { onTestFinished } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import type { Endpoint } from '../../src/host/endpoint.ts'

/** Serves an endpoint until the test is over. `path` is that of a receiver, or the prefix of a collector. Returns its URL. */
export type Serve = (endpoint: Endpoint, path: string) => Promise<string>

async function listen(server: http.Server, path: string): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
}

export const serveOnExpress: Serve = (endpoint, path) => {
  const app = express()
  app.use(path, serveExpress(endpoint))
  return listen(http.createServer(app), path)
}

const serveOnKoa: Serve = (endpoint, path) => {
  const app = new Koa()
  app.use(serveKoa(endpoint, { path }))
  return listen(http.createServer(app.callback()), path)
}

const serveOnFastify: Serve = async (endpoint, path) => {
  const app = fastify({ forceCloseConnections: true })
  app.register(serveFastify(endpoint), { path })
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  return `${origin}${path}`
}

export const frameworks: Readonly<Record<string, Serve>> = {
  Express: serveOnExpress,
  Koa: serveOnKoa,
  Fastify: serveOnFastify,
}

// Serves a receiver with each framework, and posts an authentic and a forged message to it.

import { createServer } from 'node:http'
import express from 'express'
import Fastify from 'fastify'
import { createReceiver } from 'hookline'
import * as onExpress from 'hookline/express'
import * as onFastify from 'hookline/fastify'
import * as onKoa from 'hookline/koa'
import { fixtures, signedRequest } from 'hookline/testing'
import Koa from 'koa'
import { runSteps } from './steps.mjs'

const secret = 'everywhere'

async function post(url) {
  const statuses = []
  for (const key of [secret, 'another secret']) {
    const response = await fetch(`${url}/webhooks`, signedRequest(fixtures.track, key))
    await response.text()
    statuses.push(response.status)
  }
  return statuses
}

async function postTo(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const statuses = await post(`http://127.0.0.1:${server.address().port}`)
  server.close()
  server.closeAllConnections()
  return statuses
}

const receiver = createReceiver({ secret, onError() {} }).on('track', () => {})

await runSteps({
  Express: () => postTo(createServer(express().post('/webhooks', onExpress.serve(receiver)))),
  Koa: () => postTo(createServer(new Koa().use(onKoa.serve(receiver, { path: '/webhooks' })).callback())),
  async Fastify() {
    const app = Fastify({ forceCloseConnections: true })
    app.register(onFastify.serve(receiver), { path: '/webhooks' })
    const statuses = await post(await app.listen({ port: 0, host: '127.0.0.1' }))
    await app.close()
    return statuses
  },
})

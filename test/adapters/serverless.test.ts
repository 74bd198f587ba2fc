/** Frameworks of Node inside a wrapper for Lambda, whose requests cannot be read once it has dispatched them. */

import { configure } from '@codegenie/serverless-express'
import express5 from 'express'
import express4 from 'express4'
import fastify5 from 'fastify'
import fastify4 from 'fastify4'
import Koa3 from 'koa'
import Koa2 from 'koa2'
import { describe, expect, it } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import type { LambdaAnswer } from '../../adapters/lambda.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import type { Receiver } from '../../src/receive/receiver-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { secret, signed } from '../contracts/conditions.ts'
import { clientOfLambda, GATEWAYS } from '../support/lambda.ts'
import { setUp } from '../support/receive.ts'

const express = (framework: typeof express5) => (receiver: Receiver) =>
  framework().post('/webhooks', serveExpress(receiver))
const koa = (Framework: typeof Koa3) => (receiver: Receiver) =>
  new Framework().use(serveKoa(receiver, { path: '/webhooks' }))
const fastify = (framework: typeof fastify5) => async (receiver: Receiver) => {
  const app = framework()
  app.register(serveFastify(receiver), { path: '/webhooks' })
  await app.ready()
  return app.routing
}

const apps: readonly (readonly [string, (receiver: Receiver) => unknown])[] = [
  ['Express 4', express(express4 as unknown as typeof express5)],
  ['Express 5', express(express5)],
  ['Koa 2', koa(Koa2 as unknown as typeof Koa3)],
  ['Koa 3', koa(Koa3)],
  ['Fastify 4', fastify(fastify4 as unknown as typeof fastify5)],
  ['Fastify 5', fastify(fastify5)],
  ['node:http', (receiver) => serveNode(receiver, { path: '/webhooks' })],
]

describe.each(apps)('%s', (_name, start) => {
  it.each(['REST API', 'HTTP API', 'load balancer'] as const)('takes messages of a %s', async (gateway) => {
    const { receiver, errors } = setUp({ secret, limit: 5000 })
    const handled: unknown[] = []
    receiver.on('*', (_message, { verified, bodySource }) => handled.push([verified, bodySource]))
    const wrapped = configure({ app: (await start(receiver)) as never })
    const handler = (event: unknown, context: unknown) =>
      wrapped(event, context as never, () => {}) as unknown as Promise<LambdaAnswer>
    const { send } = clientOfLambda(handler, GATEWAYS[gateway], true)

    const body = JSON.stringify(fixtures.track, undefined, 2)
    const forged = { 'x-signature': '0'.repeat(40) }
    const replies = [
      await send(signed(body)),
      await send(signed(body, forged)),
      await send(signed(`${body}${' '.repeat(5000)}`)),
    ]

    expect(replies.map((reply) => reply?.status)).toEqual([200, 401, 413])
    expect(handled).toEqual([['signature', 'body']])
    expect(errors.map(({ code }) => code)).toEqual(['signature_mismatch', 'body_too_large'])
  })
})

/** Frameworks of Node inside a wrapper for Lambda, whose requests cannot be read once it has dispatched them. */

import { configure } from '@codegenie/serverless-express'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { serve as serveExpress } from '../../adapters/express.ts'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveKoa } from '../../adapters/koa.ts'
import type { LambdaAnswer } from '../../adapters/lambda.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import type { Receiver } from '../../src/receive/receiver-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { secret, signed } from '../contracts/adapter.ts'
import { clientOfLambda, GATEWAYS } from '../support/lambda.ts'
import { setUp } from '../support/receive.ts'

const apps: readonly (readonly [string, (receiver: Receiver) => unknown])[] = [
  ['Express', (receiver) => express().post('/webhooks', serveExpress(receiver))],
  ['Koa', (receiver) => new Koa().use(serveKoa(receiver, { path: '/webhooks' }))],
  [
    'Fastify',
    async (receiver) => {
      const app = fastify()
      app.register(serveFastify(receiver), { path: '/webhooks' })
      await app.ready()
      return app.routing
    },
  ],
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

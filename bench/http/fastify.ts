/** The servers on Fastify 5. */

import type { Server } from 'node:http'
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fastify'
import { secret } from '../message.ts'
import { answer, type Contenders, handle, path } from './contenders.ts'
import { isAuthentic, LIMIT, parseMessage } from './hand-written.ts'

export const contenders: Contenders = {
  bare: () => {
    const app = withRawBody()
    app.post(path, (request, reply) => {
      handle(JSON.parse((request.body as Buffer).toString()))
      succeed(reply)
    })
    return ready(app)
  },

  'hand-written': () => {
    const app = withRawBody()
    app.post(path, async (request, reply) => {
      const body = request.body as Buffer
      if (!isAuthentic(request.headers, body)) return reply.code(401).send()
      const message = parseMessage(body)
      if (message === undefined) return reply.code(400).send()
      handle(message)
      return succeed(reply)
    })
    return ready(app)
  },

  hookline: () => {
    const app = fastify()
    app.register(serve(createReceiver({ secret }).on('track', handle)), { path })
    return ready(app)
  },
}

/** Fastify refuses other content types and longer bodies by itself. */
function withRawBody(): FastifyInstance {
  const app = fastify({ bodyLimit: LIMIT })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  return app
}

const answerBytes = Buffer.from(answer)

/** Fastify counts the length itself; to text it would add a charset. */
function succeed(reply: FastifyReply): FastifyReply {
  return reply.header('content-type', 'application/json').send(answerBytes)
}

async function ready(app: FastifyInstance): Promise<Server> {
  await app.ready()
  return app.server
}

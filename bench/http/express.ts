/** The servers on Express 5. */

import { createServer } from 'node:http'
import express from 'express'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/express'
import { secret } from '../message.ts'
import { answer, answerHeaders, type Contenders, handle, octokitListener, path } from './contenders.ts'
import { isAuthentic, LIMIT, parseMessage } from './hand-written.ts'

/** Express's own way to a raw body, with its limit. */
const raw = express.raw({ type: 'application/json', limit: LIMIT })

export const contenders: Contenders = {
  bare: () => {
    const app = express()
    app.post(path, raw, (request, response) => {
      handle(JSON.parse(String(request.body)))
      response.writeHead(200, answerHeaders).end(answer)
    })
    return createServer(app)
  },

  'hand-written': () => {
    const app = express()
    app.post(path, raw, (request, response) => {
      if (!Buffer.isBuffer(request.body)) return void response.sendStatus(415)
      if (!isAuthentic(request.headers, request.body)) return void response.sendStatus(401)
      const message = parseMessage(request.body)
      if (message === undefined) return void response.sendStatus(400)
      handle(message)
      response.writeHead(200, answerHeaders).end(answer)
    })
    return createServer(app)
  },

  octokit: async () => {
    const app = express()
    app.use(await octokitListener())
    return createServer(app)
  },

  hookline: () => {
    const app = express()
    app.post(path, serve(createReceiver({ secret }).on('track', handle)))
    return createServer(app)
  },
}

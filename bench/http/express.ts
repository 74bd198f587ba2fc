/** The servers on Express 5. */

import { createServer } from 'node:http'
import express from 'express'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/express'
import { secret } from '../message.ts'
import { answer, answerHeaders, type Contenders, handle, octokitListener, path, readBare } from './contenders.ts'
import { receive } from './hand-written.ts'

export const contenders: Contenders = {
  bare: () => {
    const app = express()
    app.post(path, (request, response) => {
      readBare(request, (body) => {
        handle(JSON.parse(body.toString()))
        response.writeHead(200, answerHeaders).end(answer)
      })
    })
    return createServer(app)
  },

  'hand-written': () => {
    const app = express()
    app.post(path, async (request, response) => {
      const received = await receive(request)
      if ('status' in received) return void response.sendStatus(received.status)
      handle(received.message)
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

/** The servers on node:http. */

import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import { secret } from '../message.ts'
import { answer, answerHeaders, type Contenders, handle, octokitListener, path, readBare } from './contenders.ts'
import { receive } from './hand-written.ts'

export const contenders: Contenders = {
  bare: () =>
    createServer((request, response) => {
      readBare(request, (body) => {
        handle(JSON.parse(body.toString()))
        response.writeHead(200, answerHeaders).end(answer)
      })
    }),

  'hand-written': () =>
    createServer(async (request, response) => {
      try {
        if (request.url !== path) return void response.writeHead(404).end()
        if (request.method !== 'POST') return void response.writeHead(405).end()
        const received = await receive(request)
        if ('status' in received) return void response.writeHead(received.status).end()
        handle(received.message)
        response.writeHead(200, answerHeaders).end(answer)
      } catch {
        response.writeHead(500).end()
      }
    }),

  octokit: async () => createServer(await octokitListener()),

  hookline: () => createServer(serve(createReceiver({ secret }).on('track', handle), { path })),
}

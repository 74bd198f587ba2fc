/** The servers on Koa 3. */

import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/koa'
import Koa from 'koa'
import { secret } from '../message.ts'
import { answer, type Contenders, handle, path, readBare } from './contenders.ts'
import { receive } from './hand-written.ts'

export const contenders: Contenders = {
  bare: () => {
    const app = new Koa()
    app.use(
      (context) =>
        new Promise<void>((resolve) => {
          readBare(context.req, (body) => {
            handle(JSON.parse(body.toString()))
            succeed(context)
            resolve()
          })
        }),
    )
    return createServer(app.callback())
  },

  'hand-written': () => {
    const app = new Koa()
    app.use(async (context, next) => {
      if (context.path !== path || context.method !== 'POST') return next()
      const received = await receive(context.req)
      if ('status' in received) {
        context.status = received.status
        return
      }
      handle(received.message)
      succeed(context)
    })
    return createServer(app.callback())
  },

  hookline: () => {
    const app = new Koa()
    app.use(serve(createReceiver({ secret }).on('track', handle), { path }))
    return createServer(app.callback())
  },
}

/** Koa counts the length itself; `context.type` would look the type up and add a charset. */
function succeed(context: Koa.Context): void {
  context.status = 200
  context.set('content-type', 'application/json')
  context.body = answer
}

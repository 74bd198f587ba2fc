import Hapi from '@hapi/hapi'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)
const server = Hapi.server({ port: process.env.PORT ?? 3000 })

server.route({
  method: 'POST',
  path: '/webhooks',
  options: { payload: { parse: false, output: 'stream' } },
  handler({ raw }, h) {
    webhook(raw.req, raw.res)
    return h.abandon
  },
})

await server.start()

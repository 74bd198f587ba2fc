import { app } from '@azure/functions'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)

app.http('webhooks', {
  methods: ['POST'],
  authLevel: 'anonymous',
  handler: async (request) => {
    const { url, method, headers } = request
    return webhook(new Request(url, { method, headers, body: await request.arrayBuffer() }))
  },
})

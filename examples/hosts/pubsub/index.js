import { http } from '@google-cloud/functions-framework'
import { createReceiver } from 'hookline'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

http('webhooks', async (request, response) => {
  const { data = '', attributes = {} } = request.body.message
  const { status } = await receiver.receive(Buffer.from(data, 'base64'), attributes)
  response.sendStatus(status >= 500 ? status : 204)
})

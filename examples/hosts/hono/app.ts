import { Hono } from 'hono'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

const receiver = createReceiver({ secret: () => process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)
const app = new Hono()

app.post('/webhooks', (context) => webhook(context.req.raw))

export default app

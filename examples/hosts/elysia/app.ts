import { Elysia } from 'elysia'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)

new Elysia().post('/webhooks', ({ request }) => webhook(request), { parse: 'none' }).listen(process.env.PORT ?? 3000)

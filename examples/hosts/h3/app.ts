import { fromWebHandler, H3, serve as listen } from 'h3'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const app = new H3()

app.post('/webhooks', fromWebHandler(serve(receiver)))

listen(app, { port: process.env.PORT ?? 3000 })

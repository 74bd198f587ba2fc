import { createReceiver } from 'hookline'
import { serve } from 'hookline/express'

const receiver = createReceiver({ secret: () => process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

export default fromNodeMiddleware(serve(receiver))

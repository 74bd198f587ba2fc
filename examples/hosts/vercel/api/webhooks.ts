import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

export const POST = serve(receiver)

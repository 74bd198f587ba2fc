import { http } from '@google-cloud/functions-framework'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

http('webhooks', serve(receiver))

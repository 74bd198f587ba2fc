import { defineSecret } from 'firebase-functions/params'
import { onRequest } from 'firebase-functions/v2/https'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const secret = defineSecret('HOOKLINE_SECRET')
const receiver = createReceiver({ secret: () => secret.value() })

receiver.on('track', (message) => console.log('track', message))

export const webhooks = onRequest({ secrets: [secret] }, serve(receiver))

import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'
import { env } from '$env/dynamic/private'
import type { RequestHandler } from './$types'

const receiver = createReceiver({ secret: () => env.SHARED_SECRET })

receiver.on('track', (message) => console.log('track', message.userId, message.event))

const webhook = serve(receiver)

export const POST: RequestHandler = ({ request }) => webhook(request)

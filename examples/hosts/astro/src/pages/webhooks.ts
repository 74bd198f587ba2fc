import type { APIRoute } from 'astro'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'

export const prerender = false

const receiver = createReceiver({ secret: () => process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)

export const POST: APIRoute = ({ request }) => webhook(request)

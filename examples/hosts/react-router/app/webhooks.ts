import { createReceiver } from 'hookline'
import { serve } from 'hookline/fetch'
import type { Route } from './+types/webhooks'

const receiver = createReceiver({ secret: () => process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)

export const action = ({ request }: Route.ActionArgs) => webhook(request)

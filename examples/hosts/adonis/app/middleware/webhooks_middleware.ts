import { once } from 'node:events'
import type { HttpContext } from '@adonisjs/core/http'
import type { NextFn } from '@adonisjs/core/types/http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'

const receiver = createReceiver({ secret: () => process.env.HOOKLINE_SECRET })

receiver.on('track', (message) => console.log('track', message))

const webhook = serve(receiver)

export default class WebhooksMiddleware {
  async handle({ request, response }: HttpContext, next: NextFn) {
    if (request.url() !== '/webhooks') return next()
    webhook(request.request, response.response)
    await once(response.response, 'close')
  }
}

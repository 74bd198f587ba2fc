import { createReceiver } from 'hookline'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { env } from '$env/dynamic/private'

export const receiver = createReceiver({
  secret: () => env.HOOKLINE_SECRET,
  inbox: sqliteQueue({ path: 'webhooks.sqlite', name: 'inbox' }),
})

receiver.on('track', async (message) => console.log('track', message))

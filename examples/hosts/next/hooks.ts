import { createReceiver } from 'hookline'
import { sqliteQueue } from 'hookline/queues/sqlite'

export const receiver = createReceiver({
  secret: () => process.env.HOOKLINE_SECRET,
  inbox: sqliteQueue({ path: 'webhooks.sqlite', name: 'inbox' }),
})

receiver.on('track', async (message) => console.log('track', message))

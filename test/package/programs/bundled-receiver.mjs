// Receives into an inbox on SQLite in the current folder, and returns the answers and what a handler got.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createReceiver, sign } from 'hookline'
import { serve } from 'hookline/node'
import { sqliteQueue } from 'hookline/queues/sqlite'

const BODY = JSON.stringify({
  ...{ type: 'track', version: 1, userId: 'user-1', event: 'Order Completed', properties: {} },
  ...{ messageId: 'message-1', timestamp: '2026-11-01T00:00:00.000Z', context: {} },
})

export async function runBundled() {
  const inbox = sqliteQueue({ path: 'inbox.sqlite', name: 'inbox' })
  const receiver = createReceiver({ secret: 'package-test', inbox, onError: () => {} })
  const handled = new Promise((resolve) => receiver.on('track', ({ event }) => resolve(event)))
  receiver.start()
  const server = createServer(serve(receiver)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const statuses = []
  for (const secret of ['package-test', 'another secret']) {
    const headers = { 'Content-Type': 'application/json', 'X-Signature': sign(BODY, secret) }
    const { status } = await fetch(`http://127.0.0.1:${server.address().port}/`, {
      method: 'POST',
      body: BODY,
      headers,
    })
    statuses.push(status)
  }
  const event = await handled
  await receiver.close()
  server.close()
  server.closeAllConnections()
  return { statuses, event }
}

// Posts by a sender, a destination and a client, and returns what came of it.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createClient } from 'hookline/client'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { createDestination, createSender } from 'hookline/sender'

const CALL = { userId: 'user-1', event: 'Order Completed' }

export async function runBundled() {
  const server = createServer((request, response) => request.resume().on('end', () => response.end('{}')))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = `http://127.0.0.1:${server.address().port}/`

  const sender = createSender({ webhooks: [{ url }], sharedSecret: 'package-test' })
  const { ok } = await sender.track(CALL)
  await sender.close()

  const queue = sqliteQueue({ path: 'outbox.sqlite', name: 'outbox' })
  const reported = Promise.withResolvers()
  const onAttempt = ({ status }) => reported.resolve(status)
  const destination = createDestination({ webhooks: [{ url }], sharedSecret: 'package-test', queue, onAttempt })
  await destination.track(CALL)
  const status = await reported.promise
  await destination.close()

  const client = createClient('write-key', { endpoint: url })
  client.track(CALL)
  const undelivered = await client.close()

  server.close()
  server.closeAllConnections()
  return { ok, status, undelivered }
}

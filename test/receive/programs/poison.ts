/** Handles an inbox of a SQLite file until it is empty, 100 messages at a time. A message of the user `poison` ends the process. */

import { setTimeout as wait } from 'node:timers/promises'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'

const inbox = sqliteQueue({ path: String(process.argv[2]) })
const receiver = createReceiver({ secret: 'a shared secret', inbox: { queue: inbox, concurrency: 100 }, onError() {} })
receiver.on('track', async ({ userId }) => {
  await wait(5)
  if (userId === 'poison') process.kill(process.pid, 'SIGKILL')
})
receiver.start()
await inbox.drain()
await receiver.close({ graceMs: 1_000 })

/** Inboxes that the tests of `hookline queue` look into: what was handled, what failed, what waits. */

import { createReceiver, type Handler, type Receiver } from 'hookline'
import type { Queue } from 'hookline/queues'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures, signedRequest } from 'hookline/testing'
import { secret, deliver as send } from '../../../test/support/receive.ts'
import { until } from '../../../test/support/until.ts'

export async function createEmptyQueue(path: string): Promise<void> {
  const queue = sqliteQueue({ path, name: 'inbox' })
  await queue.counts()
  await queue.close({ graceMs: 0 })
}

/** Handles messages with the handler `crm`: the history of the inbox then has them, and its dead letters those that are invalid. */
export async function handle(queue: Queue, messages: readonly object[]): Promise<void> {
  const inbox = { queue, history: { maxAgeMs: 86_400_000 } }
  const receiver = createReceiver({ secret, inbox, custom: true, onError() {} })
  receiver.on('*', () => {}, { name: 'crm' }).start()
  for (const message of messages) await send(receiver, message)
  await queue.drain()
  await receiver.close()
}

/** Leaves three dead letters, in the order in which they are listed, and one message that waits: names and errors are hostile. */
export async function fillInbox(open: () => Queue): Promise<void> {
  const queue = open()
  const receiver = createReceiver({ secret, inbox: { queue, retries: [], concurrency: 1 }, onError() {} })
  const fail: Handler = () => Promise.reject(new RangeError('no \u001b[31mstock'))
  receiver.on('track', fail, { name: 'crm' }).on('track', () => {})
  receiver.start()
  const first = { ...fixtures.track, event: 'Order\u001b]0;Completed', userId: 'u1' }
  for (const [index, message] of [first, fixtures.track, { type: '?' }].entries()) {
    await deliver(receiver, message)
    await until(async () => (await queue.deadLetters()).length === index + 1)
  }
  await receiver.close()

  const idle = createReceiver({ secret, inbox: { queue: open() } })
  await deliver(idle, fixtures.identify)
  await idle.close()
}

async function deliver({ receive }: Pick<Receiver, 'receive'>, message: object): Promise<void> {
  const { bytes, headers } = signedRequest(message as typeof fixtures.track, secret)
  await receive(bytes, { ...headers, 'x-team': 'growth', authorization: 'Bearer of a token' })
}

/** Inboxes that the tests of `hookline queue` look into: what was handled, what failed, what waits. */

import { createReceiver } from '../../../src/receive/create-receiver.ts'
import type { Handler } from '../../../src/receive/selection.ts'
import type { Queue } from '../../../src/store/queue-types.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { signedRequest } from '../../../src/testing/signed-request.ts'
import { secret } from '../../../test/support/receive.ts'
import { until } from '../../../test/support/until.ts'

/** Leaves three dead letters, in the order in which they are listed, and one message that waits: names and errors are hostile. */
export async function fillInbox(open: () => Queue): Promise<void> {
  const queue = open()
  const receiver = createReceiver({ secret, inbox: { queue, retries: [], concurrency: 1 }, onError() {} })
  const fail: Handler = () => {
    throw new RangeError('no \u001b[31mstock')
  }
  receiver.on('track', fail, { name: 'crm' }).on('track', () => {})
  receiver.start()
  const messages = [
    { ...fixtures.track, event: 'Order\u001b]0;Completed', userId: 'u1' },
    fixtures.track,
    { type: '?' },
  ]
  for (const [index, message] of messages.entries()) {
    await deliver(receiver, message)
    await until(async () => (await queue.deadLetters()).length === index + 1)
  }
  await receiver.close()

  const idle = createReceiver({ secret, inbox: { queue: open() } })
  await deliver(idle, fixtures.identify)
  await idle.close()
}

async function deliver(
  { receive }: Pick<ReturnType<typeof createReceiver>, 'receive'>,
  message: object,
): Promise<void> {
  const { bytes, headers } = signedRequest(message as typeof fixtures.track, secret)
  await receive(bytes, { ...headers, 'x-team': 'growth', authorization: 'Bearer of a token' })
}

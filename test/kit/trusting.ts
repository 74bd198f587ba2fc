/**
 * Run as a program in a runtime that trusts the certificates of the URLs: prints what node:https gets there, then what senders
 * and clients do, each on connections of its own.
 */

import { get } from 'node:https'
import { createClient } from '../../src/client.ts'
import { createSender } from '../../src/send/create-sender.ts'

for (const url of process.argv.slice(2)) {
  const sender = createSender({ webhooks: [{ url }] })
  const outcomes: unknown[] = [await getStatus(url)]
  for (let index = 0; index < 3; index++) {
    const { attempts } = await sender.delete({ userId: 'user-1' })
    outcomes.push(attempts[0]?.status ?? attempts[0]?.error)
  }
  await sender.close()

  const onError = (error: Error) => outcomes.push(error.message)
  const client = createClient('write-key', { endpoint: url, flushAt: 1, maxRetries: 2, random: () => 0, onError })
  client.track({ userId: 'user-1', event: 'Event' })
  await client.close()
  console.log(JSON.stringify(outcomes))
}

function getStatus(url: string): Promise<unknown> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false }, (response) => resolve(response.resume().statusCode))
    request.on('error', ({ message }) => resolve(message))
  })
}

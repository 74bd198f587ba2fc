/** The receiver of the soak, in a process of its own: an inbox, and handlers of which some fail once and some always. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import type { QueueCounts } from 'hookline/queues'
import { secret } from '../message.ts'
import { openQueue, type Place } from '../queues/place.ts'
import { measureLiveMemory } from './process.ts'

/** What is to become of a message; the event names say it. */
export type Fate = 'succeeds' | 'fails once' | 'fails'

/** How it stands. */
export interface Standing extends QueueCounts {
  /** Messages that the handlers were done with. */
  readonly handled: number
  /** Attempts that failed. */
  readonly failures: number
  /** What is left after a garbage collection, in MB: the heap, and buffers outside of it. */
  readonly live: number
}

const place = JSON.parse(process.argv[2] ?? '') as Place
const RETRIES_MS = [500, 1_000]
const queue = await openQueue(place)
const failed = new Set<unknown>()
let handled = 0
let failures = 0

function succeed(): void {
  handled += 1
}

function fail(): never {
  failures += 1
  throw new Error('as it is meant to')
}

const receiver = createReceiver({ secret, inbox: { queue, concurrency: 50, retries: RETRIES_MS }, onError: () => {} })
receiver
  .on('track', 'succeeds' satisfies Fate, succeed)
  .on('track', 'fails' satisfies Fate, fail)
  .on('track', 'fails once' satisfies Fate, ({ messageId }) => {
    if (!failed.delete(messageId)) {
      failed.add(messageId)
      fail()
    }
    succeed()
  })
  .start()

const server = createServer(serve(receiver))
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

process.on('message', async () => {
  const counts = await queue.counts()
  process.send?.({ ...counts, handled, failures, live: measureLiveMemory() } satisfies Standing)
})
process.on('disconnect', async () => {
  await receiver.close()
  process.exit()
})

/** A destination, and producers that keep some messages waiting in its queue. */

import { setTimeout as wait } from 'node:timers/promises'
import type { Queue } from 'hookline/queues'
import { memoryQueue } from 'hookline/queues/memory'
import { createDestination } from 'hookline/sender'
import type { Contender } from '../contender.ts'
import { hangingPath, message, secret } from '../message.ts'
import { CONCURRENCY, inParallel } from '../parallel.ts'
import { openQueue, type Place } from '../queues/place.ts'

/** Enough to keep every connection busy, and no backlog that is itself a load. */
const MAX_QUEUED = 1000
/** How long a post may go without an answer, in milliseconds ("Outbound event delivery", Limits). */
const RESPONSE_TIME_MS = 5000
const DEAD_MESSAGES = 2000

export interface DestinationSetting {
  /** Where its queue is. Default: in memory. */
  readonly place?: Place
  /** Whether there is another destination in the process whose endpoint takes every post and never answers. */
  readonly besideDead?: true
}

export async function openContender(url: string, { place, besideDead }: DestinationSetting = {}): Promise<Contender> {
  const queue: Queue = place === undefined ? memoryQueue() : await openQueue(place)
  let queued = 0
  let wake = Promise.withResolvers<void>()
  const destination = createDestination({
    webhooks: [{ url }],
    sharedSecret: secret,
    queue,
    concurrency: CONCURRENCY,
    onAttempt({ status, latest }) {
      if (status !== 'delivered') endWith(`Not delivered: ${JSON.stringify(latest)}`)
      queued -= 1
      if (queued !== MAX_QUEUED / 2) return
      wake.resolve()
      wake = Promise.withResolvers()
    },
  })
  if (besideDead === true) await openDead(url)

  async function send(): Promise<void> {
    if (queued >= MAX_QUEUED) await wake.promise
    queued += 1
    await destination.send(message)
  }

  return {
    async run(messages) {
      await inParallel(messages, send)
      await queue.drain()
    },
  }
}

/** Its posts begin one after the other, so that later on they run out of time one after the other. */
async function openDead(url: string): Promise<void> {
  const webhooks = [{ url: new URL(hangingPath, url).href }]
  const destination = createDestination({ webhooks, sharedSecret: secret, onAttempt: () => {} })
  for (let i = 0; i < CONCURRENCY; i++) {
    await destination.send(message)
    await wait(RESPONSE_TIME_MS / CONCURRENCY)
  }
  for (let i = 0; i < DEAD_MESSAGES; i++) await destination.send(message)
}

/** What `onAttempt` throws would be a warning. */
function endWith(reason: string): never {
  console.error(reason)
  process.exit(1)
}

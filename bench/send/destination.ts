/** A destination on its memory queue, and a producer that keeps some messages waiting in it. */

import { createDestination } from 'hookline/sender'
import { secret } from '../message.ts'
import type { Contender } from './contender.ts'
import { message } from './message.ts'
import { CONCURRENCY } from './parallel.ts'

/** Enough to keep every connection busy, and no backlog that is itself a load. */
const MOST_QUEUED = 1000

/** @param concurrency Most posts at a time. */
export async function open(url: string, concurrency = String(CONCURRENCY)): Promise<Contender> {
  let queued = 0
  let awaited = 0
  let wake: () => void = () => {}
  const destination = createDestination({
    webhooks: [{ url }],
    sharedSecret: secret,
    concurrency: Number(concurrency),
    onAttempt({ status, latest }) {
      if (status !== 'delivered') endWith(`Not delivered: ${JSON.stringify(latest)}`)
      queued -= 1
      if (queued === awaited) wake()
    },
  })

  /** Waits until so many are queued. */
  function until(count: number): Promise<void> {
    awaited = count
    return new Promise((resolve) => {
      wake = resolve
    })
  }

  return {
    async send(times) {
      for (let i = 0; i < times; i++) {
        if (queued === MOST_QUEUED) await until(MOST_QUEUED / 2)
        queued += 1
        await destination.send(message)
      }
      if (queued > 0) await until(0)
    },
  }
}

/** What `onAttempt` throws would be a warning. */
function endWith(reason: string): never {
  console.error(reason)
  process.exit(1)
}

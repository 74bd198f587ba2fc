/** Several destinations in one process, each with its queue, and maybe one more whose endpoint never answers. */

import { setTimeout as wait } from 'node:timers/promises'
import { createDestination } from 'hookline/sender'
import { secret } from '../message.ts'
import type { Contender } from './contender.ts'
import { open as openDestination } from './destination.ts'
import { hangingPath, message } from './message.ts'
import { CONCURRENCY } from './parallel.ts'

/** How long a post may go without an answer, in milliseconds ("Outbound event delivery", Limits). */
const RESPONSE_TIME_MS = 5000
/** More than a run of the benchmark takes up. */
const DEAD_MESSAGES = 2000

/**
 * @param count How many destinations are alive. They share the connections that one has alone.
 * @param dead `dead`, for one more that is not.
 */
export async function open(url: string, count = '1', dead = ''): Promise<Contender> {
  const living: Contender[] = []
  const concurrency = Math.max(1, Math.floor(CONCURRENCY / Number(count)))
  for (let i = 0; i < Number(count); i++) living.push(await openDestination(url, String(concurrency)))
  if (dead === 'dead') await openDead(url)
  return {
    async send(times) {
      await Promise.all(living.map(({ send }) => send(times / living.length)))
    },
  }
}

/** Its posts begin one after the other, so that later on they run out of time one after the other, at any moment. */
async function openDead(url: string): Promise<void> {
  const webhooks = [{ url: new URL(hangingPath, url).href }]
  const destination = createDestination({ webhooks, sharedSecret: secret, onAttempt: () => {} })
  for (let i = 0; i < CONCURRENCY; i++) {
    await destination.send(message)
    await wait(RESPONSE_TIME_MS / CONCURRENCY)
  }
  for (let i = 0; i < DEAD_MESSAGES; i++) await destination.send(message)
}

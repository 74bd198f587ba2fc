/** A process that handles jobs of another one, which writes the time into each, and has nothing else to do. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Contender } from '../contender.ts'
import { createCountdown } from '../parallel.ts'
import { quantile } from '../table.ts'
import { openQueue, type Place } from './place.ts'

const IDLE_MS = 5_000

/** A turn of no messages is idle. */
export async function openContender(place: Place): Promise<Contender> {
  const queue = await openQueue(place)
  let waits: number[] = []
  const countdown = createCountdown()
  queue.work(
    async ({ body }) => {
      waits.push(Number(process.hrtime.bigint() - Buffer.from(body).readBigInt64LE()) / 1e6)
      countdown.tick()
      return { complete: true }
    },
    { concurrency: 10 },
  )
  return {
    async run(messages) {
      waits = []
      await (messages === 0 ? delay(IDLE_MS) : countdown.start(messages))
    },
    figures: () => ({ median: quantile(waits, 0.5), p99: quantile(waits, 0.99) }),
  }
}

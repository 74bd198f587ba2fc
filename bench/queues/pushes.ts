/** Jobs that are pushed one by one, 50 at a time: into one queue or many of a file, over few or many that wait. */

import { randomUUID } from 'node:crypto'
import type { Job, Queue } from 'hookline/queues'
import type { Contender } from '../contender.ts'
import { trackMessage } from '../message.ts'
import { createCountdown, inChunks, inParallel } from '../parallel.ts'
import { openQueue, type Place } from './place.ts'

export interface PushSetting {
  /** How many queues of the same file take turns. Default 1. */
  readonly queues?: number
  /** How many jobs wait before the first push. As many are done after each turn as were pushed. */
  readonly depth?: number
  /** Ids that begin with the time, as a destination makes them; or random ones, as an inbox has them. Default random. */
  readonly ids?: 'timed' | 'random'
}

const body = trackMessage(1024)
const DONE_AT_ONCE = 100
/** At once, before the first turn: each waits for the disk. */
const FILL = 5000

export async function openContender(place: Place, { queues: count = 1, depth, ids }: PushSetting): Promise<Contender> {
  const queues: Queue[] = []
  for (let i = 0; i < count; i++) queues.push(await openQueue({ ...place, name: `${place.name}_${i}` }))
  const createJob = (): Job => ({ id: ids === 'timed' ? timedId() : randomUUID(), body })
  const first = queues[0] as Queue
  const remove = depth === undefined ? undefined : createRemover(first)
  if (depth !== undefined) await inChunks(depth, (size) => first.push(Array.from({ length: size }, createJob)), FILL)
  let next = 0
  let failed = 0

  return {
    async run(messages) {
      failed = 0
      await inParallel(messages, async () => {
        const queue = queues[next++ % count] as Queue
        await queue.push([createJob()]).catch(() => {
          failed += 1
        })
      })
    },
    restore: async (messages) => remove?.(messages),
    figures: () => ({ failed, rss: process.memoryUsage.rss() }),
  }
}

/** Completes so many of a queue, those that wait the longest. What is claimed beyond that is done the next time. */
function createRemover(queue: Queue): (count: number) => Promise<void> {
  const countdown = createCountdown()
  void queue.pause()
  queue.work(
    async () => {
      countdown.tick()
      return { complete: true }
    },
    { concurrency: DONE_AT_ONCE },
  )
  return async (count) => {
    const over = countdown.start(count)
    queue.resume()
    await over
    void queue.pause()
  }
}

/** As UUIDs of version 7 are: milliseconds, then chance. */
function timedId(): string {
  const time = Date.now().toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

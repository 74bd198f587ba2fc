/** What waits in a queue, done by handlers that do nothing: the engine driven bare, or the package's queue on it. */

import { randomUUID } from 'node:crypto'
import type { Job } from 'hookline/queues'
import type { Contender } from '../contender.ts'
import { trackMessage } from '../message.ts'
import { createCountdown, inChunks } from '../parallel.ts'
import { BATCH, openBare } from './bare.ts'
import { openQueue, type Place } from './place.ts'

/** `in turn`: each job has a group of its own. */
export type DrainKind = 'bare' | 'queue' | 'in turn'

const body = trackMessage(1024)

export async function openContender(place: Place, kind: DrainKind): Promise<Contender> {
  return kind === 'bare' ? drainBare(place) : drainQueue(place, kind === 'in turn')
}

async function drainBare(place: Place): Promise<Contender> {
  const { add, drain } = await openBare(place)
  const put = (count: number) => add(Array.from({ length: count }, () => body))
  return { prepare: (messages) => inChunks(messages, put), run: drain }
}

async function drainQueue(place: Place, hasGroups: boolean): Promise<Contender> {
  const queue = await openQueue(place)
  const put = (count: number) => queue.push(Array.from({ length: count }, () => createJob(hasGroups)))
  const countdown = createCountdown()
  void queue.pause()
  queue.work(
    async () => {
      countdown.tick()
      return { complete: true }
    },
    { concurrency: BATCH },
  )
  return {
    prepare: (messages) => inChunks(messages, put),
    async run(messages) {
      const over = countdown.start(messages)
      queue.resume()
      await over
      await queue.drain()
      void queue.pause()
    },
  }
}

function createJob(hasGroups: boolean): Job {
  const id = randomUUID()
  return hasGroups ? { id, body, group: id } : { id, body }
}

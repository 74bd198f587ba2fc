/** A receiver on node:http: inline, with an inbox that nobody works on, or with one whose handlers run in this process. */

import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import type { Contender } from '../contenders.ts'
import { path } from '../http/host.ts'
import { listen } from '../http/listen.ts'
import { secret, trackMessage } from '../message.ts'
import { inChunks } from './drain.ts'
import { keepJobs, openQueue, type Place } from './place.ts'

export type InboxKind = 'inline' | 'accepting' | 'working'

const CONCURRENCY = 50
const history = { maxAgeMs: 30 * 24 * 60 * 60_000 }

/** @param kept How many messages are in its history at first. Default: it has none. */
export async function open(place: Place, kind: InboxKind, kept?: number | null): Promise<Contender> {
  if (kept) await fill(place, kept)
  let count = 0
  let handled = 0
  /** Counts what is accepted. */
  const key = (): string => `${place.name}-${count++}`
  const queue = kind === 'inline' ? undefined : await openQueue(place)
  const inbox = queue && { queue, concurrency: CONCURRENCY, key, ...(kept && { history }) }
  const receiver = createReceiver({ secret, onError: () => {}, ...(inbox && { inbox }) }).on('track', () => {
    handled += 1
  })
  if (kind === 'working') receiver.start()
  return {
    hello: await listen(createServer(serve(receiver, { path }))),
    settle: async () => (kind === 'working' ? queue?.drain() : undefined),
    figures: () => ({ handled: kind === 'accepting' ? count : handled }),
  }
}

async function fill(place: Place, count: number): Promise<void> {
  const queue = await openQueue(place)
  const keep = keepJobs(queue)
  await inChunks(count, (size) => keep(Array.from({ length: size }, () => body)), FILL)
  await queue.close({ graceMs: 0 })
}

const body = trackMessage(1024)
const FILL = 5_000

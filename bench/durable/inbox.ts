/** A receiver on node:http: inline, with an inbox that nobody works on, or with one whose handlers run in this process. */

import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import type { Contender } from '../contenders.ts'
import { path } from '../http/host.ts'
import { listen } from '../http/listen.ts'
import { secret, trackMessage } from '../message.ts'
import { inChunks } from './drain.ts'
import { handleJobs, openQueue, type Place } from './place.ts'

export type InboxKind = 'inline' | 'accepting' | 'working'

/** Its load is connected while other contenders handle their first messages. */
const WITHOUT_TIMEOUTS = { requestTimeout: 0, headersTimeout: 0 }
const CONCURRENCY = 50
const history = { maxAgeMs: 30 * 24 * 60 * 60_000 }

/** How many messages it has handled before, and whether they are in a history. */
interface Before {
  readonly handled: number
  readonly areKept: boolean
}

export async function open(place: Place, kind: InboxKind, before?: Before): Promise<Contender> {
  if (before !== undefined) await fill(place, before)
  let count = 0
  let handled = 0
  /** Counts what is accepted. */
  const key = (): string => `${place.name}-${count++}`
  const queue = kind === 'inline' ? undefined : await openQueue(place)
  const inbox = queue && { queue, concurrency: CONCURRENCY, key, ...(before?.areKept && { history }) }
  const receiver = createReceiver({ secret, onError: () => {}, ...(inbox && { inbox }) }).on('track', () => {
    handled += 1
  })
  if (kind === 'working') receiver.start()
  return {
    hello: await listen(createServer(WITHOUT_TIMEOUTS, serve(receiver, { path }))),
    settle: async () => (kind === 'working' ? queue?.drain() : undefined),
    figures: () => ({ handled: kind === 'accepting' ? count : handled }),
  }
}

async function fill(place: Place, { handled, areKept }: Before): Promise<void> {
  const queue = await openQueue(place)
  const handle = handleJobs(queue, areKept)
  await inChunks(handled, (size) => handle(Array.from({ length: size }, () => body)), FILL)
  await queue.close({ graceMs: 0 })
}

const body = trackMessage(1024)
const FILL = 5_000

/** A receiver on node:http: inline, with an inbox that nobody works on, or with one whose handlers run in this process. */

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import type { Outcome, Queue } from 'hookline/queues'
import type { Contender } from '../contender.ts'
import { listen, path } from '../http/host.ts'
import { secret, trackMessage } from '../message.ts'
import { inChunks } from '../parallel.ts'
import { openQueue, type Place } from '../queues/place.ts'

export type InboxKind = 'inline' | 'accepting' | 'working'

/** Its load is connected while other contenders handle their first messages. */
const WITHOUT_TIMEOUTS = { requestTimeout: 0, headersTimeout: 0 }
const CONCURRENCY = 50
const history = { maxAgeMs: 30 * 24 * 60 * 60_000 }

/** How many messages it has handled before, and whether they are in a history. */
export interface Before {
  readonly handled: number
  readonly areKept: boolean
}

export async function openContender(place: Place, kind: InboxKind, before?: Before): Promise<Contender> {
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

/** Returns what pushes jobs and handles them: so that they are in the log, unless they are not kept. */
export function handleJobs(queue: Queue, areKept = true): (bodies: readonly Uint8Array[]) => Promise<void> {
  const outcome: Outcome = areKept ? { complete: true, log: new Uint8Array() } : { complete: true }
  queue.work(async () => outcome, { concurrency: 500 })
  return async (bodies) => {
    await queue.push(bodies.map((body) => ({ id: randomUUID(), body })))
    await queue.drain()
  }
}

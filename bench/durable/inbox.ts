/** A receiver on node:http: inline, with an inbox that nobody works on, or with one whose handlers run in this process. */

import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import type { Contender } from '../contenders.ts'
import { path } from '../http/host.ts'
import { listen } from '../http/listen.ts'
import { secret } from '../message.ts'
import { openQueue, type Place } from './place.ts'

export type InboxKind = 'inline' | 'accepting' | 'working'

const CONCURRENCY = 50

export async function open(place: Place, kind: InboxKind): Promise<Contender> {
  let count = 0
  let handled = 0
  /** Counts what is accepted. */
  const key = (): string => `${place.name}-${count++}`
  const queue = kind === 'inline' ? undefined : await openQueue(place)
  const inbox = queue && { queue, concurrency: CONCURRENCY, key }
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

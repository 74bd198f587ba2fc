/** A client, Hookline's or Segment's: the same calls, in the same rhythm, until all are delivered. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { Analytics } from '@segment/analytics-node'
import { createClient } from 'hookline/client'
import type { Contender } from '../contender.ts'
import { message, writeKey } from '../message.ts'

/** The message as a call: the client gives it an id and a time. */
const call = { userId: message.userId, event: message.event, properties: message.properties }

interface AnyClient {
  track(what: { userId: string; event: string; properties: Record<string, unknown> }): void
  flush(): Promise<void>
}

export type ClientKind = 'segment' | 'hookline'

/** Calls within one turn of the event loop, as of a server that is busy. */
const CALLS_A_TURN = 100
/** The rest are their defaults. */
const FLUSH_AT = 20
const FLUSH_AFTER_MS = 5000

export async function openContender(url: string, kind: ClientKind): Promise<Contender> {
  const client = kind === 'hookline' ? openHookline(url) : await openSegment(url)
  let waited = 0
  return {
    async run(messages) {
      waited = 0
      for (let done = 0; done < messages; done += CALLS_A_TURN) {
        const start = performance.now()
        for (let i = done; i < Math.min(messages, done + CALLS_A_TURN); i++) client.track(call)
        waited += performance.now() - start
        await nextTurn()
      }
      await client.flush()
    },
    figures: () => ({ waited: waited * 1000 }),
  }
}

function openHookline(url: string): AnyClient {
  return createClient(writeKey, { endpoint: url, flushAt: FLUSH_AT, flushAfterMs: FLUSH_AFTER_MS })
}

async function openSegment(url: string): Promise<AnyClient> {
  const { origin: host, pathname: path } = new URL(url)
  const analytics = new Analytics({ writeKey, host, path, flushAt: FLUSH_AT, flushInterval: FLUSH_AFTER_MS })
  analytics.on('error', ({ reason }) => console.error(reason))
  await analytics.ready
  return analytics
}

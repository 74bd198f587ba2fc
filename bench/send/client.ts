/** How both clients are driven: the same calls, in the same rhythm. */

import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import type { Contender } from './contender.ts'
import { call } from './message.ts'

/** What both have. */
export interface AnyClient {
  track(what: { userId: string; event: string; properties: Record<string, unknown> }): void
  flush(): Promise<void>
}

/** How a client is set. The rest are its defaults. */
export interface ClientSettings {
  readonly flushAt: number
  readonly flushAfterMs: number
}

/** Calls within one turn of the event loop, as of a server that is busy. */
const CALLS_A_TURN = 100
/** By then Segment's client, which takes calls over in timers of 0 ms, has them in its batch. */
const SETTLED_MS = 20

/** For `record`, limits that no slice of timed calls reaches: neither client sends meanwhile. */
export function settingsFor(what: string): ClientSettings {
  return what === 'record' ? { flushAt: 1000, flushAfterMs: 600_000 } : { flushAt: 20, flushAfterMs: 5000 }
}

/** Drives a client. */
export function drive(client: AnyClient): Contender {
  return {
    async send(times) {
      for (let done = 0; done < times; done += CALLS_A_TURN) {
        for (let i = done; i < Math.min(times, done + CALLS_A_TURN); i++) client.track(call)
        await nextTurn()
      }
      await client.flush()
    },
    async record(times) {
      const before = process.cpuUsage()
      const start = process.hrtime.bigint()
      for (let i = 0; i < times; i++) client.track(call)
      const waited = Number(process.hrtime.bigint() - start)
      await wait(SETTLED_MS)
      const { user, system } = process.cpuUsage(before)
      await client.flush()
      return { waited: waited / times, cpu: ((user + system) * 1000) / times }
    },
  }
}

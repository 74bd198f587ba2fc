/** The page of the inspector on a port of this machine, for `--ui`: of requests that `hookline listen` adds, or of queues. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import { serve } from '../../adapters/node.ts'
import { createEndpoint, type EndpointOptions } from '../inspector/endpoint/endpoint.ts'
import { partOfQueue } from '../inspector/endpoint/queues.ts'
import { createJournal, readKeep } from '../inspector/journal.ts'
import { createSeries } from '../inspector/series.ts'
import { createLog } from '../options/log.ts'
import type { Queue } from '../queues/api.ts'
import { systemClock } from '../time/clock.ts'
import { listenOn } from './arguments.ts'
import { interruption, note } from './terminal.ts'

/**
 * Serves the page, and notes its URL.
 *
 * @param port True: any free one.
 * @throws UsageError (as a rejection) for a port that cannot be listened on.
 */
export async function openPage(
  port: number | true,
  shown: Pick<EndpointOptions, 'command' | 'address' | 'parts' | 'events' | 'explain'>,
) {
  const keep = readKeep()
  const log = createLog(undefined, undefined, systemClock)
  const journal = createJournal(keep, systemClock, log)
  const series = createSeries(systemClock)
  const endpoint = createEndpoint({ ...shown, keep, journal, series, log, clock: systemClock, machine: systemClock })
  const server = createServer(serve(endpoint))
  const { origin, close } = await listenOn('--ui', server, port === true ? 0 : port).catch(async (error) => {
    await endpoint.close()
    throw error
  })
  note(`The page is at ${endpoint.url(origin)}`)
  return {
    journal,
    series,
    async close(): Promise<void> {
      await endpoint.close()
      await close()
      journal.close()
    },
  }
}

/**
 * Serves queues until Ctrl-C.
 *
 * @throws HooklineError (as a rejection) for a queue that cannot be looked into.
 */
export async function showQueues(
  names: readonly string[],
  open: (name: string) => Promise<Queue>,
  port: number | true,
): Promise<void> {
  const queues: Queue[] = []
  try {
    for (const name of names) {
      const queue = await open(name)
      queues.push(queue)
      await queue.counts()
    }
    const parts = queues.map((queue, at) => partOfQueue(names[at] as string, queue, systemClock))
    const interrupted = interruption()
    const page = await openPage(port, { command: 'queue', parts })
    note('It may redrive and drop dead letters, and replay messages. Ctrl-C ends.')
    if (!interrupted.aborted) await once(interrupted, 'abort')
    await page.close()
  } finally {
    await Promise.all(queues.map((queue) => queue.close({ graceMs: 0 })))
  }
}

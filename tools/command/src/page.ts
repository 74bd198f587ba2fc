/** Serves the pages of `--ui` on a port of this machine. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { InspectQueueOptions, Queue } from 'hookline/queues'
import { createQueuePage, type PageServer } from '../../inspector/src/page-server.ts'
import { listenOn } from './arguments.ts'
import { interruption, note } from './terminal.ts'

/**
 * Serves a page and prints its URL. Returns a function that stops the server.
 *
 * @param port The port, or true for any free port.
 * @throws UsageError (as a rejection) for a port that is not available.
 */
export async function servePage(
  { handler, url, close }: Pick<PageServer, 'handler' | 'url' | 'close'>,
  port: number | true,
): Promise<() => Promise<void>> {
  const server = createServer(handler)
  const listening = await listenOn('--ui', server, port === true ? 0 : port).catch(async (error) => {
    await close()
    throw error
  })
  note(`The page is at ${url(listening.origin)}`)
  return async () => {
    await close()
    await listening.close()
  }
}

/**
 * Serves a page about the named queues until the user presses Ctrl-C.
 *
 * @throws HooklineError (as a rejection) for a queue that cannot be read, and UsageError for a port that is not available.
 */
export async function showQueues(
  names: readonly string[],
  openQueue: (name: string) => Promise<Queue>,
  port: number | true,
  how: InspectQueueOptions,
): Promise<void> {
  const queues = new Map<string, Queue>()
  try {
    for (const name of names) {
      const queue = await openQueue(name)
      queues.set(name, queue)
      await queue.counts()
    }
    const interrupted = interruption()
    const close = await servePage(createQueuePage(queues, how), port)
    note('The page can redrive and drop dead letters, and replay messages. Press Ctrl-C to stop.')
    if (!interrupted.aborted) await once(interrupted, 'abort')
    await close()
  } finally {
    await Promise.all([...queues.values()].map((queue) => queue.close({ graceMs: 0 })))
  }
}

/** `hookline queue … --ui`: the queues and their dead letters on a page. */

import { once } from 'node:events'
import { partOfQueue } from '../../inspector/endpoint/queues.ts'
import { createJournal, readKeep } from '../../inspector/journal.ts'
import { createSeries } from '../../inspector/series.ts'
import { createLog } from '../../options/log.ts'
import type { Queue } from '../../queues/queue.ts'
import { systemClock } from '../../time/clock.ts'
import { openPage } from '../page.ts'
import { interruption, note } from '../terminal.ts'

/**
 * Serves the page until Ctrl-C.
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
    const keep = readKeep()
    const parts = queues.map((queue, at) => partOfQueue(names[at] as string, queue, systemClock))
    const journal = createJournal(keep, systemClock, createLog(undefined, undefined, systemClock))
    const interrupted = interruption()
    const page = await openPage(port, { command: 'queue', journal, series: createSeries(systemClock), parts, keep })
    note('It may redrive and drop dead letters. Ctrl-C ends.')
    if (!interrupted.aborted) await once(interrupted, 'abort')
    await page.close()
  } finally {
    await Promise.all(queues.map((queue) => queue.close({ graceMs: 0 })))
  }
}

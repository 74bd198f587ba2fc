/** Jobs in every phase, as a queue leaves them. */

import type { Job, Outcome, Queue } from '../../src/store/queue-types.ts'
import { until } from './until.ts'

const idOf = (number: number) => `00000000-0000-4000-8000-00000000000${number}`

/**
 * Leaves a job that waits (1), one that waits for its time (2), one that is retried later (3), a dead letter (4), one that is
 * complete (5), and one that is claimed for as long as the queue is open (6).
 */
export async function leaveJobs(queue: Queue, later: Date): Promise<void> {
  const outcomes: Readonly<Record<string, Outcome>> = {
    [idOf(3)]: { retryAt: new Date(later.getTime() + 60_000), retryState: Buffer.from('state') },
    [idOf(4)]: { deadLetter: 'reason', retryState: Buffer.from('last state') },
    [idOf(5)]: { complete: true },
  }
  const jobOf = (number: number): Job => ({ id: idOf(number), body: Buffer.from(`body ${number}`) })
  let isClaimed = false
  queue.work(
    async ({ id }) => {
      const outcome = outcomes[id]
      if (outcome !== undefined) return outcome
      void queue.pause()
      isClaimed = true
      return new Promise(() => {})
    },
    { concurrency: 1 },
  )
  for (const number of [3, 4, 5]) await queue.push([jobOf(number)])
  await queue.push([{ ...jobOf(2), notBefore: later }])
  await queue.drain()
  await queue.push([jobOf(6)])
  await until(() => isClaimed)
  await queue.push([jobOf(1)])
}

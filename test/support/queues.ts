/** What tests of queues share: jobs, and a handler that records what it sees. */

import { randomUUID } from 'node:crypto'
import type { ClaimedJob, Job, Outcome, Queue } from '../../src/queues/queue.ts'

export const complete: Outcome = { complete: true }

export type Decide = (job: ClaimedJob, signal: AbortSignal) => Outcome | Promise<Outcome>

export function jobOf(body = 'job', more: Partial<Job> = {}): Job {
  return { id: randomUUID(), body: Buffer.from(body), ...more }
}

export function bodiesOf(jobs: readonly { readonly body: Uint8Array }[]): string[] {
  return jobs.map(({ body }) => `${Buffer.from(body)}`)
}

/** Works on a queue; the jobs that were claimed so far are in the list. */
export function work(
  queue: Pick<Queue, 'work'>,
  decide: Decide = () => complete,
  concurrency = 10,
  seen: ClaimedJob[] = [],
): ClaimedJob[] {
  queue.work(
    async (job, signal) => {
      seen.push(job)
      return decide(job, signal)
    },
    { concurrency },
  )
  return seen
}

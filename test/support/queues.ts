/** What tests of queues share: jobs, and a handler that records what it sees. */

import { randomUUID } from 'node:crypto'
import type { ClaimedJob, Job, Outcome, Queue, WorkOptions } from '../../src/store/queue-types.ts'

export const complete: Outcome = { complete: true }

export type Decide = (job: ClaimedJob, signal: AbortSignal) => Outcome | Promise<Outcome>

export function jobOf(body = 'job', more: Partial<Job> = {}): Job {
  return { id: randomUUID(), body: Buffer.from(body), ...more }
}

export function bodiesOf(jobs: readonly { readonly body: Uint8Array }[]): string[] {
  return jobs.map(({ body }) => `${Buffer.from(body)}`)
}

export function work(
  queue: Pick<Queue, 'work'>,
  decide: Decide = () => complete,
  concurrency = 10,
  seen: ClaimedJob[] = [],
  more: Pick<WorkOptions, 'onUnreadable'> = {},
): ClaimedJob[] {
  queue.work(
    async (job, signal) => {
      seen.push(job)
      return decide(job, signal)
    },
    { concurrency, ...more },
  )
  return seen
}

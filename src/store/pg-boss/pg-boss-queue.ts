/** A queue in PostgreSQL, through pg-boss, for destinations and inboxes that several machines share. */

import { createQueue } from '../create-queue.ts'
import type { Queue } from '../queue-types.ts'
import { asObserver } from '../use.ts'
import { Connection } from './pg-boss-connection.ts'
import { type PgBossQueueOptions, readOptions } from './pg-boss-options.ts'
import { PgBossStore } from './pg-boss-store.ts'
import { prepareQueues, requireQueues } from './pg-boss-tables.ts'

/**
 * Creates a queue in PostgreSQL, whose jobs survive the end of the process and the loss of its machine. The queue connects at the first
 * call, and creates the pg-boss schema if it is missing. While PostgreSQL is unreachable, pushes reject with `queue_unavailable`;
 * afterwards, work resumes automatically.
 *
 * - A push resolves when PostgreSQL has committed it. By default, PostgreSQL has `synchronous_commit = on` and `fsync = on`: a job then
 *   survives a crash of this process, of PostgreSQL and of its machine, including a power failure. If either setting is `off`, a crash of
 *   PostgreSQL or of its machine may lose the jobs that were pushed just before.
 * - The jobs of a killed worker wait again within 30 seconds by default: see `leaseMs`.
 * - If the answer to a claim is lost, the queue releases the jobs of the claim before it claims again.
 * - Jobs are claimed in the order of pg-boss: approximately the oldest first. A retry keeps its place in this order.
 * - Jobs of one group that are pushed in one call are stored one after the other: if the call rejects, the first of the jobs may have been
 *   stored. Jobs of one group that you push in your own transaction are handled in no particular order.
 * - The id and the body of a completed job stay in PostgreSQL for `dedupeWindowMs`.
 * - `counts()` reads the pg-boss statistics, which are up to 10 seconds old, or up to a minute with a `boss` or an observer: see `asOf`.
 * - The log is a table in the pg-boss schema, which is written in the transaction that completes the jobs.
 * - In the result of `forget`, `active` counts only the jobs that this process has claimed.
 * - A job that Hookline did not write becomes a dead letter with the data of the job as its body.
 * - A handler may take at most 24 hours. After that, its job is claimed again.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const queue = pgBossQueue({ name: 'orders', connectionString: process.env.DATABASE_URL })
 * queue.work(async (job) => ({ complete: true }), { concurrency: 100 })
 * await queue.push([{ id: randomUUID(), body }])
 */
export function pgBossQueue(options: PgBossQueueOptions): Queue {
  const settings = readOptions(options)
  const { name, pollMs, deadLetterRetentionMs, observe, onError, clock } = settings
  const connection = new Connection(settings, (boss, use) =>
    observe ? requireQueues(boss, settings) : prepareQueues(boss, settings, use),
  )
  const store = new PgBossStore(connection, settings)
  const queue = createQueue(store, { name, pollMs, deadLetterRetentionMs, onError, clock })
  return observe ? asObserver(queue, name) : queue
}
